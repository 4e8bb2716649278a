#pragma once

// Replays the steps of a training with given operation times: the longest path through a JobGraph,
// for all steps at once.

#include <functional>
#include <vector>

#include "pipewright/trace/straggler/job_graph.hpp"

namespace pipewright::trace {

/// A time for each node in each step, in seconds.
class JobTimes {
 public:
  JobTimes() = default;
  JobTimes(std::size_t nodes, std::size_t steps) : steps_(steps), values_(nodes * steps) {}

  std::size_t steps() const { return steps_; }
  std::size_t nodes() const { return steps_ == 0 ? 0 : values_.size() / steps_; }
  std::span<double> of(NodeNumber node) { return {values_.data() + node * steps_, steps_}; }
  std::span<const double> of(NodeNumber node) const {
    return {values_.data() + node * steps_, steps_};
  }

 private:
  std::size_t steps_ = 0;
  std::vector<double> values_;  // the steps of a node are contiguous
};

/// Returns when each operation ends, in seconds since the step's begin. `delays`, if given, holds
/// how much later than possible each operation begins; in a group the latest member counts.
JobTimes replayed_ends(const JobGraph& graph, const JobTimes& times,
                       const JobTimes* delays = nullptr);

/// Returns, for each step, the latest end of an optimizer.
std::vector<double> replayed_steps(const JobGraph& graph, const JobTimes& times,
                                   const JobTimes* delays = nullptr);

/// Returns `times` for nodes that satisfy `is_one`, and `others` for the rest.
JobTimes chosen_times(const JobGraph& graph, const JobTimes& times, const JobTimes& others,
                      const std::function<bool(const JobNode&)>& is_one);

double mean_of(const std::vector<double>& values);

}  // namespace pipewright::trace
