#pragma once

// Operations of a worker in a traced training, as named in the traces of production jobs (Lin et
// al., "Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI 2025).

#include <array>
#include <optional>
#include <string_view>

namespace pipewright::trace {

enum class JobOperation {
  Forward,   // one microbatch through one stage
  Backward,  // likewise
  ForwardSend,
  ForwardReceive,
  BackwardSend,
  BackwardReceive,
  Gather,        // all-gathers the stage's parameters over its replicas
  Scatter,       // reduce-scatters the gradients over the replicas
  NormSum,       // all-reduces the gradients of norms over tensor-parallel ranks
  EmbeddingSum,  // all-reduces the tied embedding of the first and last stages
  SeparateSum,   // gradients not covered by the scatters during the backwards
  Clip,          // norm of all gradients, over all workers
  Optimizer,
  GarbageCollection,
  WeightGradient,  // in no trace: used by schedules that split a backward
};
inline constexpr std::size_t job_operation_count =
    static_cast<std::size_t>(JobOperation::WeightGradient) + 1;
inline constexpr std::array all_job_operations = [] {
  std::array<JobOperation, job_operation_count> all{};
  for (std::size_t at = 0; at < all.size(); ++at)
    all[at] = static_cast<JobOperation>(at);
  return all;
}();

constexpr std::size_t index_of(JobOperation operation) {
  return static_cast<std::size_t>(operation);
}

/// Returns the name in traces, such as "forward-compute".
std::string_view name_of(JobOperation operation);
std::optional<JobOperation> find_job_operation(std::string_view name);

/// Returns the operation's type. The sends and receives of a direction have one type:
/// "forward-pp-comm".
std::string_view type_of(JobOperation operation);

/// Returns true for computes in the strict sense: one microbatch through one stage.
constexpr bool is_compute(JobOperation operation) {
  return operation == JobOperation::Forward || operation == JobOperation::Backward ||
         operation == JobOperation::WeightGradient;
}
constexpr bool is_transfer(JobOperation operation) {
  return operation >= JobOperation::ForwardSend && operation <= JobOperation::BackwardReceive;
}
/// Returns true if a worker performs it alone; all other operations are communication.
constexpr bool is_alone(JobOperation operation) {
  return is_compute(operation) || operation == JobOperation::Optimizer ||
         operation == JobOperation::GarbageCollection;
}

/// The two directions through a pipeline.
enum class Direction { Forward, Backward };
inline constexpr std::array both_directions{Direction::Forward, Direction::Backward};
constexpr JobOperation compute_of(Direction direction) {
  return direction == Direction::Forward ? JobOperation::Forward : JobOperation::Backward;
}
constexpr JobOperation send_of(Direction direction) {
  return direction == Direction::Forward ? JobOperation::ForwardSend : JobOperation::BackwardSend;
}
constexpr JobOperation receive_of(Direction direction) {
  return direction == Direction::Forward ? JobOperation::ForwardReceive
                                         : JobOperation::BackwardReceive;
}

}  // namespace pipewright::trace
