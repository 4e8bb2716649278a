#pragma once

// How long ranks wait for one of their group that is late, without clocks that agree: whoever comes
// last to a collective waits for nobody, so what it takes the quickest is what passing on takes.

#include <vector>

#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::exec {

/// Of each of a group's collectives on the ranks' own threads (Lane::Compute), what it took this
/// member beyond the quickest of them, in seconds. `seconds`: what each took this one, in their
/// order; a negative number where that is not known, and then nobody waited. All members call it,
/// after equally many collectives. Throws std::logic_error where their numbers differ.
std::vector<double> waits_for_late(Transport& transport, const std::vector<int>& group, int rank,
                                   const std::vector<double>& seconds);

}  // namespace pipewright::exec
