#pragma once

// A core for each rank.

namespace pipewright::exec {

/// Keeps the calling thread on one core, so that the kernel does not move it away from its caches:
/// the one of that number among those that the process may use. Nothing happens when they are fewer
/// than ranks.
void pin_to_core(int rank, int ranks);

}  // namespace pipewright::exec
