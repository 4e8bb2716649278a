#pragma once

// What the program of a rank is given: words in its environment, and files that are left open for
// it, which the environment gives the number of.

#include <optional>

namespace pipewright::exec {

/// Has the secret of a job. Others than its user cannot read the environment of a process.
constexpr const char* variable_of_secret = "PIPEWRIGHT_JOB_SECRET";

/// So many of the launcher's processes are ranks of the job, the first ones; not set: all.
constexpr const char* variable_of_ranks = "PIPEWRIGHT_JOB_RANKS";

/// In a child that becomes a rank: its program has `file`.
void hand_on(int file, const char* variable);

/// The file that this process has so, once: programs that it starts have it no more. Nothing where
/// no launcher has handed one on.
std::optional<int> handed_on(const char* variable);

}  // namespace pipewright::exec
