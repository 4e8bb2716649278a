#pragma once

namespace pipewright::cli {

/// Starts this program again `count` times with the same words but `--processes`, as the ranks of a
/// job on this machine, and waits for them. Returns the exit code: of a rank that failed, if one
/// did.
int run_as_processes(int count, double timeout_s);

}  // namespace pipewright::cli
