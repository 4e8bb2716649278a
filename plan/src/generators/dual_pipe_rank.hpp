#pragma once

// The actions of one rank of DualPipe and DualPipeV. A rank has two sides, each a stage with its
// own sequence of microbatches: the two directions of DualPipe, or the two arms of the V. Both
// schedules have the same eight phases. `hop` of `hops` is the distance of the rank from the end at
// which side 0 starts.

#include <vector>

#include "closed_forms.hpp"
#include "pipewright/plan/schedules/action.hpp"

namespace pipewright::plan {

struct DualPipeSide {
  int stage = 0;
  int first_microbatch = 0;
};

/// Returns the actions of a rank, with `microbatches` on each side, at least 2 * hops.
std::vector<Action> dual_pipe_rank(const DualPipeSide& side_0, const DualPipeSide& side_1, int hop,
                                   int hops, int microbatches);

/// Returns the bubble of DualPipe over `hops` ranks with `stages` stages each.
inline std::optional<double> dual_pipe_bubble(const ScheduleSizes& s, int hops, int stages) {
  if (s.forward != s.input_gradient || s.weight_gradient > s.forward)
    return {};
  const double pair = s.forward + s.backward();
  return (hops - 1) * (pair + s.backward() - 3 * s.weight_gradient) / stages;
}

}  // namespace pipewright::plan
