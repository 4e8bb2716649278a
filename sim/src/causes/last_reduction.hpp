#pragma once

// Finds the reduction that delays an optimizer step.

#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// Returns the reduction that ends last among those that an optimizer step waits for, or -1.
inline int last_reduction(const Structure& structure, const Times& times, int step) {
  int last = -1;
  structure.events().for_each_predecessor(step, [&](int before, plan::Until) {
    const bool reduces = plan::is_collective(structure.events()[before].instruction->kind);
    if (reduces && (last < 0 || times[before].end > times[last].end))
      last = before;
  });
  return last;
}

}  // namespace pipewright::sim
