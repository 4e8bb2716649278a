#pragma once

// What a change is worth: the slope of the iteration time in a direction of the costs, exactly,
// with no second simulation and no step size.
// It is one-sided: of several longest paths the one that is shortened least counts, so a part that
// is sped up beside others just as slow gains nothing. Times come from either engine; where links
// are shared, the slope is the one with each transfer's share as it was.

#include <vector>

#include "pipewright/sim/structure/step_costs.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// What one second less of computation on a stage saves of an iteration, in seconds.
struct StageSensitivity {
  double forward = 0;          // of every forward and recompute of the stage
  double input_gradient = 0;   //
  double weight_gradient = 0;  //
  double all = 0;  // one second less per microbatch, shared among the three as their times are
};
/// By stage.
std::vector<StageSensitivity> stage_sensitivities(const Structure& structure, const Times& times,
                                                  const StepCosts& costs);

/// What one second less of a transfer saves, of every transfer between these two ranks in that
/// direction, in seconds per iteration.
struct LinkSensitivity {
  int from = 0;
  int to = 0;
  double latency = 0;
  double occupancy = 0;  // bytes over bandwidth
};
/// By pair of ranks that transfer something.
std::vector<LinkSensitivity> link_sensitivities(const Structure& structure, const Times& times);

}  // namespace pipewright::sim
