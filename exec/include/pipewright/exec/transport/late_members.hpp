#pragma once

// Measures how long ranks wait for a late rank of their group, without synchronized clocks. The
// last rank to enter a collective waits for no other, so the shortest time in it is the
// communication time.

#include <vector>

#include "pipewright/exec/transport/transport.hpp"

namespace pipewright::exec {

/// Returns, for each collective of a group on the ranks' own threads (Lane::Compute), the seconds
/// that it took this rank beyond the fastest one. `seconds`: the time of each collective on this
/// rank, in order; a negative time is unknown, and then the result is 0 on all ranks. Every rank of
/// the group must call it, after the same number of collectives. Throws std::logic_error if the
/// numbers differ.
std::vector<double> waits_for_late(Transport& transport, const std::vector<int>& group, int rank,
                                   const std::vector<double>& seconds);

}  // namespace pipewright::exec
