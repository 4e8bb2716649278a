#pragma once

// The question that zb-auto answers, and the form in which its parts pass answers around.

#include <vector>

#include "pipewright/plan/schedules/action.hpp"

namespace pipewright::plan::zero_bubble {

struct Stage {
  double forward = 0;
  double input_gradient = 0;
  double weight_gradient = 0;
  int memory_limit = 0;  // in units: a forward adds 2, either gradient frees 1
};

struct Problem {
  int microbatches = 0;
  std::vector<Stage> stages;  // one a rank
  double transfer = 0;

  int stage_count() const { return static_cast<int>(stages.size()); }
};

/// What one stage runs. Each kind runs its microbatches in order, so the m-th forward is that of
/// microbatch m and the kinds alone say everything.
using Order = std::vector<ActionKind>;

}  // namespace pipewright::plan::zero_bubble
