#pragma once

// Deadlock detection: proves that the ranks of a Program never wait for each other forever, or says
// why they do.

#include <optional>
#include <string>

#include "pipewright/plan/program/dependencies.hpp"

namespace pipewright::plan {

/// Describes the shortest cycle: "deadlock: rank 0 at 0SEND_F1 waits for 1RECV_F1, which rank 1 has
/// behind 1SEND_B0; rank 1 at …". Returns nothing if every instruction can run.
std::optional<std::string> find_deadlock(const Dependencies& dependencies);

/// Checks a Program under other communicators and transfers than its own.
std::optional<std::string> find_deadlock(Program program, CommunicatorLayout communicators,
                                         TransferMode transfers);

}  // namespace pipewright::plan
