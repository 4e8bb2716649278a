#pragma once

// A core for each rank.

namespace pipewright::exec {

/// Keeps the calling thread on one core, so that the kernel does not move it away from its caches.
/// The cores that the process may use are counted from 0; with fewer cores than ranks nothing
/// happens.
void pin_to_core(int rank, int ranks);

}  // namespace pipewright::exec
