#pragma once

// Sensitivities: the derivative of the iteration time in a direction of the costs, exactly, without
// a second simulation or a step size. It is one-sided: among several longest paths, the one that is
// shortened least counts, so speeding up one of several equally slow parts gains nothing. Times may
// come from either engine. On shared links the derivative keeps each transfer's share of the
// bandwidth fixed.

#include <vector>

#include "pipewright/sim/structure/step_costs.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// The iteration time saved by one second less of computation on a stage, in seconds.
struct StageSensitivity {
  double forward = 0;          // for every forward and recomputation of the stage
  double input_gradient = 0;   //
  double weight_gradient = 0;  //
  double all = 0;  // one second less per microbatch, divided among the three in proportion to their
                   // times
};
/// Returns the sensitivities by stage.
std::vector<StageSensitivity> stage_sensitivities(const Structure& structure, const Times& times,
                                                  const StepCosts& costs);

/// The iteration time saved by one second less for every transfer from one rank to another, in
/// seconds per iteration.
struct LinkSensitivity {
  int from = 0;
  int to = 0;
  double latency = 0;
  double occupancy = 0;  // bytes over bandwidth
};
/// Returns the sensitivities of all pairs of ranks that transfer data.
std::vector<LinkSensitivity> link_sensitivities(const Structure& structure, const Times& times);

}  // namespace pipewright::sim
