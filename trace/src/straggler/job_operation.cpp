#include "pipewright/trace/straggler/job_operation.hpp"

namespace pipewright::trace {
namespace {

constexpr std::array<std::string_view, job_operation_count> operation_names{
    "forward-compute",
    "backward-compute",
    "forward-send",
    "forward-recv",
    "backward-send",
    "backward-recv",
    "params-all-gather",
    "grads-reduce-scatter",
    "layernorm-grads-all-reduce",
    "embedding-grads-all-reduce",
    "separate-grads-all-reduce",
    "optimizer-clip-main-grad",
    "optimizer",
    "gc",
    "weight-gradient-compute",
};

}  // namespace

std::string_view name_of(JobOperation operation) { return operation_names[index_of(operation)]; }

std::optional<JobOperation> find_job_operation(std::string_view name) {
  for (const JobOperation operation : all_job_operations)
    if (operation != JobOperation::WeightGradient && name_of(operation) == name)
      return operation;
  return {};
}

std::string_view type_of(JobOperation operation) {
  switch (operation) {
    case JobOperation::ForwardSend:
    case JobOperation::ForwardReceive:
      return "forward-pp-comm";
    case JobOperation::BackwardSend:
    case JobOperation::BackwardReceive:
      return "backward-pp-comm";
    default:
      return name_of(operation);
  }
}

}  // namespace pipewright::trace
