#include "straggler/job_source.hpp"

#include <algorithm>

namespace pipewright::trace {

JobSource::JobSource(const JobSteps& steps) : steps_(steps) {
  const JobLayout& layout = steps.plan.layout;
  const auto workers = static_cast<std::size_t>(layout.workers());
  by_operation_.resize(workers * job_operation_count);
  computes_.resize(workers * 2 * static_cast<std::size_t>(layout.chunks) *
                   static_cast<std::size_t>(steps.plan.schedule.microbatches));
  for (NodeNumber node = 0; node < steps.graph.nodes.size(); ++node) {
    const JobNode& own = steps.graph.nodes[node];
    by_operation_[static_cast<std::size_t>(own.worker) * job_operation_count +
                  index_of(own.operation)]
        .push_back(node);
    if (own.operation == JobOperation::Forward || own.operation == JobOperation::Backward)
      computes_[slot(
          own.worker,
          own.operation == JobOperation::Forward ? Direction::Forward : Direction::Backward,
          own.chunk, own.microbatch)] = node;
  }
}

std::size_t JobSource::slot(int worker, Direction direction, int chunk, int microbatch) const {
  const JobPlan& plan = steps_.plan;
  const int way = direction == Direction::Forward ? 0 : 1;
  return static_cast<std::size_t>(
      ((worker * 2 + way) * plan.layout.chunks + chunk) * plan.schedule.microbatches + microbatch);
}

NodeNumber JobSource::compute(int worker, Direction direction, int chunk, int microbatch) const {
  return computes_[slot(worker, direction, chunk, microbatch)];
}

std::span<const NodeNumber> JobSource::all(int worker, JobOperation operation) const {
  return by_operation_[static_cast<std::size_t>(worker) * job_operation_count +
                       index_of(operation)];
}

const NodeNumber* JobSource::find(int worker, JobOperation operation, int index) const {
  const auto own = all(worker, operation);
  if (own.empty())
    return nullptr;
  return &own[std::min(static_cast<std::size_t>(index), own.size() - 1)];
}

double JobSource::mean_compute(int worker, Direction direction) const {
  const JobPlan& plan = steps_.plan;
  double sum = 0;
  int steps = 0;
  for (std::size_t step = 0; step < steps_.recorded.steps(); step += 2, ++steps)
    for (int chunk = 0; chunk < plan.layout.chunks; ++chunk)
      for (int microbatch = 0; microbatch < plan.schedule.microbatches; ++microbatch)
        sum += times(compute(worker, direction, chunk, microbatch))[step];
  return sum / steps / plan.schedule.microbatches;
}

double JobSource::mean_stage(int stage, Direction direction) const {
  const JobLayout& layout = steps_.plan.layout;
  double sum = 0;
  for (int replica = 0; replica < layout.replicas; ++replica)
    sum += mean_compute(layout.worker(replica, stage), direction);
  return sum / layout.replicas;
}

}  // namespace pipewright::trace
