#pragma once

// A file that a launcher leaves open for the program of a rank, which the environment gives the
// number of.

#include <optional>

namespace pipewright::exec {

/// In a child that becomes a rank: its program has `file`.
void hand_on(int file, const char* variable);

/// The file that this process has so, once: programs that it starts have it no more. Nothing where
/// no launcher has handed one on.
std::optional<int> handed_on(const char* variable);

}  // namespace pipewright::exec
