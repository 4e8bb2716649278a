#pragma once

// Finds the recorded times of a job by worker, direction and microbatch.

#include <vector>

#include "pipewright/trace/straggler/job_steps.hpp"

namespace pipewright::trace {

class JobSource {
 public:
  explicit JobSource(const JobSteps& steps);

  /// Returns the compute of a microbatch through a chunk.
  NodeNumber compute(int worker, Direction direction, int chunk, int microbatch) const;
  /// Returns the `index`-th operation of this kind on a worker, or the last one if there are fewer.
  const NodeNumber* find(int worker, JobOperation operation, int index) const;
  /// Returns all operations of this kind on a worker.
  std::span<const NodeNumber> all(int worker, JobOperation operation) const;
  std::span<const double> times(NodeNumber node) const { return steps_.recorded.of(node); }

  /// Returns the mean compute time of one microbatch through all chunks of a worker, over every
  /// second step from the first on.
  double mean_compute(int worker, Direction direction) const;
  /// Returns the same for a stage, over all replicas.
  double mean_stage(int stage, Direction direction) const;

 private:
  std::size_t slot(int worker, Direction direction, int chunk, int microbatch) const;

  const JobSteps& steps_;
  std::vector<NodeNumber> computes_;
  std::vector<std::vector<NodeNumber>> by_operation_;  // by worker and operation
};

}  // namespace pipewright::trace
