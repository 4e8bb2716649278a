#pragma once

// The critical path of an iteration, and the slack of every event: how much later it could end
// without making the iteration longer.

#include <vector>

#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// Returns the events of a longest path, in order from the start of the iteration to its end. It is
/// traced back from the end, each time to the predecessor that was waited for last. If several end
/// at the same time, the compute before it on the same rank is preferred. Times may come from
/// either engine (native or SimGrid).
std::vector<int> critical_path(const Structure& structure, const Times& times);

/// Returns each event's slack in seconds: how much later it could end without making the iteration
/// longer, if no other event took longer. It is 0 on every longest path. Times may come from either
/// engine.
std::vector<double> slack(const Structure& structure, const Times& times);

}  // namespace pipewright::sim
