#include "bound.hpp"

#include <algorithm>
#include <vector>

namespace pipewright::plan::zero_bubble {
namespace {

// Proof. Consider a stage with M microbatches, times f, i, w, and memory for k = limit / 2 of them,
// where k is at most M. `round_trip` is the time from the start of a forward to the earliest start
// of the same microbatch's input gradient: f, then forwards down to the last stage, then gradients
// up.
//
// Waiting. Before the first input gradient starts, at round_trip, only forwards can run, and no
// more than k of them fit into memory. So the forwards and the wait take at least M f, and at least
// round_trip + (M - k) f. The gradients are additional.
//
// Memory. Just before the last forward 2 (M - 1) + 2 - I - W is at most the limit, where W is at
// most I and I is less than M. So at least M - k input gradients have run by then, and at least M +
// 1 - limit weight gradients. Likewise forward m + k follows input gradient m, and, when the limit
// is even, also weight gradient m or input gradient m + 1. So k microbatches take at least one
// `cycle`.
//
// Chains. The last forward of a stage follows that of the stage before, the last input gradient
// follows that of the stage after, and a stage always ends with a weight gradient.

/// The time that one stage needs on its own, counted from its first start.
class StageDemand {
 public:
  StageDemand(const PassTimes& stage, int memory_limit, int microbatches, double round_trip)
      : stage_(stage),
        memory_limit_(memory_limit),
        microbatches_(microbatches),
        in_flight_(std::min(microbatches, memory_limit / 2)),
        round_trip_(round_trip) {}

  double last_forward_end() const {
    // Forwards after the first input gradient; as many input gradients precede the last one.
    const int after_gradient = microbatches_ - in_flight_;
    const double forwards =
        after_gradient > 0 ? forwards_and_wait() : microbatches_ * stage_.forward.value;
    const int cycles = (microbatches_ - 1) / in_flight_;
    return std::max(
        forwards + after_gradient * stage_.input_gradient.value + early_weight_gradients(),
        cycles * cycle() + stage_.forward.value);
  }
  double last_input_gradient_end() const {
    return forwards_and_wait() + microbatches_ * stage_.input_gradient.value +
           early_weight_gradients();
  }
  double span() const {
    return forwards_and_wait() +
           microbatches_ * (stage_.input_gradient.value + stage_.weight_gradient.value);
  }

 private:
  double forwards_and_wait() const {
    return std::max(microbatches_ * stage_.forward.value,
                    round_trip_ + (microbatches_ - in_flight_) * stage_.forward.value);
  }
  double early_weight_gradients() const {
    return std::max(0, microbatches_ + 1 - memory_limit_) * stage_.weight_gradient.value;
  }
  double cycle() const {
    const double gradients = round_trip_ + stage_.input_gradient.value;
    if (memory_limit_ % 2 == 1)
      return gradients;
    return gradients + (in_flight_ == 1
                            ? stage_.weight_gradient.value
                            : std::min(stage_.input_gradient.value, stage_.weight_gradient.value));
  }

  const PassTimes& stage_;
  int memory_limit_;
  int microbatches_;
  int in_flight_;
  double round_trip_;
};

/// Returns for each stage the time from the start of a forward to the earliest start of its input
/// gradient.
std::vector<double> round_trips(const Problem& problem) {
  std::vector<double> trips(problem.costs.stages.size());
  double below = 0;
  for (int stage = problem.stage_count() - 1; stage >= 0; --stage) {
    const PassTimes& times = problem.costs.stages[stage];
    trips[stage] = times.forward.value + below;
    below += times.forward.value + times.input_gradient.value + 2 * problem.costs.transfer.value;
  }
  return trips;
}

}  // namespace

double lower_bound(const Problem& problem) {
  const std::vector<double> trips = round_trips(problem);
  std::vector<StageDemand> demands;
  std::vector<double> first_starts;
  double first_start = 0;
  double last_end = 0;  // of the last microbatch, after going down and up
  for (int stage = 0; stage < problem.stage_count(); ++stage) {
    const PassTimes& times = problem.costs.stages[stage];
    const double transfer = stage > 0 ? problem.costs.transfer.value : 0;
    demands.emplace_back(times, problem.memory_limits[stage], problem.microbatches, trips[stage]);
    first_start += transfer;
    first_starts.push_back(first_start);
    last_end = std::max(first_start + demands[stage].last_forward_end(),
                        last_end + transfer + times.forward.value);
    first_start += times.forward.value;
  }

  double bound = 0;
  for (int stage = problem.stage_count() - 1; stage >= 0; --stage) {
    const PassTimes& times = problem.costs.stages[stage];
    const double transfer = stage + 1 < problem.stage_count() ? problem.costs.transfer.value : 0;
    last_end = std::max(first_starts[stage] + demands[stage].last_input_gradient_end(),
                        last_end + transfer + times.input_gradient.value);
    bound = std::max({bound, demands[stage].span(),
                      last_end + times.weight_gradient.value - first_starts[stage]});
  }
  return bound;
}

}  // namespace pipewright::plan::zero_bubble
