#pragma once

// What an iteration's length hangs on: the chain of events that leaves no room, and for every other
// event how much later it could end.

#include <vector>

#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// The events of one longest path, from the start of the iteration to its end. Of several equally
/// long paths it is the one that, followed back from the end, stays on its rank for longest. Times
/// may come from any engine.
std::vector<int> critical_path(const Structure& structure, const Times& times);

/// In seconds, by event: how much later it could end with the iteration as long as it is, if
/// nothing else took longer. 0 on every longest path. Times come from either engine.
std::vector<double> slack(const Structure& structure, const Times& times);

}  // namespace pipewright::sim
