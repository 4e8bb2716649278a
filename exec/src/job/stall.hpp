#pragma once

// What is said of a job in which every rank lives and nobody gets any further.

#include "report.hpp"

namespace pipewright::exec {

/// For when no rank has begun anything new for `time`: "rank 1 has been at 1F3 for 12 s and does
/// not end; rank 0 waits in 0RECV_B2 for it", or the ranks that wait for each other. Empty where
/// that is no failure: nobody is in an instruction, nobody waits, or some rank is in a phase, which
/// may take as long as it likes.
std::string stall_report(const std::vector<Beat>& beats, std::chrono::milliseconds time);

}  // namespace pipewright::exec
