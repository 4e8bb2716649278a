#pragma once

// How long the steps of a training take when its operations take such times: the longest path
// through a JobGraph, for all steps at once.

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
  std::vector<double> values_;  // the steps of a node side by side
};

/// When each operation ends, in seconds from the step's begin. `delays`, if given: how much later
/// each begins than it could; of a group the latest member counts.
JobTimes replayed_ends(const JobGraph& graph, const JobTimes& times,
                       const JobTimes* delays = nullptr);

/// By step: the latest end of an optimizer.
std::vector<double> replayed_steps(const JobGraph& graph, const JobTimes& times,
                                   const JobTimes* delays = nullptr);

/// These times where `is_one` holds, and the others' elsewhere.
JobTimes chosen_times(const JobGraph& graph, const JobTimes& times, const JobTimes& others,
                      const std::function<bool(const JobNode&)>& is_one);

double mean_of(const std::vector<double>& values);

}  // namespace pipewright::trace
