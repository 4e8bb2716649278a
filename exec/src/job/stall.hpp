#pragma once

// What is said of a job in which every rank lives and nobody gets any further.

#include "report.hpp"

namespace pipewright::exec {

/// For when no rank has begun anything new for `time`: "rank 1 has been at 1F3 for 12 s and does
/// not end; rank 0 waits in 0RECV_B2 for it", or the ranks that wait for each other, for their
/// devices, or in what all have come to. A wait for no ranks is one for the rank's device. Empty
/// where that is no failure: some rank is in a phase, which may take as long as it likes, or all
/// that wait do so in phases.
std::string stall_report(const std::vector<Beat>& beats, std::chrono::milliseconds time);

/// Whether this rank prints it: one that waits can, one whose action never ends perhaps not. Where
/// nobody waits all try.
bool tells_of_stall(int rank, const std::vector<Beat>& beats);

}  // namespace pipewright::exec
