#pragma once

// Reports on a job in which every rank lives but none makes progress.

#include "report.hpp"

namespace pipewright::exec {

/// Returns a report for when no rank has begun anything new for `time`: "rank 1 has been at 1F3 for
/// 12 s and does not end; rank 0 waits in 0RECV_B2 for it". If all ranks wait, it names those that
/// wait for each other, for their devices, or in a collective that all have entered. A wait for no
/// ranks is one for the rank's device. Empty if there is no failure: some rank is in a phase, which
/// may take any time, or all waiting ranks do so in phases.
std::string stall_report(const std::vector<Heartbeat>& beats, std::chrono::milliseconds time);

/// Returns true if this rank must report the stall. A waiting rank can; a rank whose action never
/// ends perhaps cannot. If no rank waits, all try.
bool tells_of_stall(int rank, const std::vector<Heartbeat>& beats);

}  // namespace pipewright::exec
