#pragma once

// The critical path of an iteration, and the slack of every event: how much later it could end
// without making the iteration longer.

#include <vector>

#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// Returns the events of one longest path, from the start of the iteration to its end. Among
/// equally long paths it returns the one that, traced back from the end, stays on its rank for
/// longest. Times may come from any engine.
std::vector<int> critical_path(const Structure& structure, const Times& times);

/// Returns each event's slack in seconds: how much later it could end without making the iteration
/// longer, if nothing else took longer. Slack is 0 on every longest path. Times may come from
/// either engine.
std::vector<double> slack(const Structure& structure, const Times& times);

}  // namespace pipewright::sim
