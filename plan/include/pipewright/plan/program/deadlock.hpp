#pragma once

// The proof that no ranks of a Program wait for each other for ever, or the reason why some do.

#include <optional>
#include <string>

#include "pipewright/plan/program/dependencies.hpp"

namespace pipewright::plan {

/// The shortest cycle in words: "deadlock: rank 0 at 0SEND_F1 waits for 1RECV_F1, which rank 1 has
/// behind 1SEND_B0; rank 1 at …". Nothing when every instruction can run.
std::optional<std::string> find_deadlock(const Dependencies& dependencies);

/// The same for a Program under other communicators and transfers than its own.
std::optional<std::string> find_deadlock(Program program, CommunicatorLayout communicators,
                                         TransferMode transfers);

}  // namespace pipewright::plan
