#pragma once

// What a worker of a traced training does, as the traces of production jobs name it (Lin et al.,
// "Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI 2025).

#include <array>
#include <optional>
#include <string_view>

namespace pipewright::trace {

enum class JobOperation {
  Forward,   // one microbatch through one stage
  Backward,  //
  ForwardSend,
  ForwardReceive,
  BackwardSend,
  BackwardReceive,
  Gather,        // parameters of the stage, over its copies
  Scatter,       // sums gradients, each copy gets its shard
  NormSum,       // gradients of norms, over tensor ranks
  EmbeddingSum,  // the tied embedding, of the first and the last stage
  SeparateSum,   // gradients that the scatters during the backwards left
  Clip,          // norm of all gradients, over all workers
  Optimizer,
  GarbageCollection,
  WeightGradient,  // in no trace: of schedules that split a backward
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

/// "forward-compute", as traces have it.
std::string_view name_of(JobOperation operation);
std::optional<JobOperation> find_job_operation(std::string_view name);

/// Sends and receives of a direction count as one: "forward-pp-comm".
std::string_view type_of(JobOperation operation);

/// Computes in the stricter sense: one microbatch through one stage.
constexpr bool is_compute(JobOperation operation) {
  return operation == JobOperation::Forward || operation == JobOperation::Backward ||
         operation == JobOperation::WeightGradient;
}
constexpr bool is_transfer(JobOperation operation) {
  return operation >= JobOperation::ForwardSend && operation <= JobOperation::BackwardReceive;
}
/// Whether a worker does it by itself; all else is communication.
constexpr bool is_alone(JobOperation operation) {
  return is_compute(operation) || operation == JobOperation::Optimizer ||
         operation == JobOperation::GarbageCollection;
}

/// The two ways through a pipeline.
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
