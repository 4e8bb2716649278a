#pragma once

// Finds the recorded times of a job by what was done: which worker, direction and microbatch.

#include <vector>

#include "pipewright/trace/straggler/job_steps.hpp"

namespace pipewright::trace {

class JobSource {
 public:
  explicit JobSource(const JobSteps& steps);

  /// The compute of a microbatch through a chunk.
  NodeNumber compute(int worker, Direction direction, int chunk, int microbatch) const;
  /// The how-manieth of an operation on a worker; of more than there are the last.
  const NodeNumber* find(int worker, JobOperation operation, int index) const;
  /// All of an operation on a worker.
  std::span<const NodeNumber> all(int worker, JobOperation operation) const;
  std::span<const double> times(NodeNumber node) const { return steps_.recorded.of(node); }

  /// Mean over every second step, from the first on, of a worker's compute, of one microbatch
  /// through all its chunks.
  double mean_compute(int worker, Direction direction) const;
  /// … of a stage, over all replicas.
  double mean_stage(int stage, Direction direction) const;

 private:
  std::size_t slot(int worker, Direction direction, int chunk, int microbatch) const;

  const JobSteps& steps_;
  std::vector<NodeNumber> computes_;
  std::vector<std::vector<NodeNumber>> by_operation_;  // by worker and operation
};

}  // namespace pipewright::trace
