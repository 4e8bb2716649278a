#pragma once

#include <vector>

#include "pipewright/plan/program/program.hpp"

namespace pipewright::plan {

/// The stages that a rank runs, in order of their numbers.
inline std::vector<int> stages_on(const Program& program, int rank) {
  std::vector<int> stages;
  for (int stage = 0; stage < stage_count(program); ++stage)
    if (program.placement.holds(rank, stage))
      stages.push_back(stage);
  return stages;
}

}  // namespace pipewright::plan
