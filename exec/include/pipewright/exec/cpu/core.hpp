#pragma once

// Assigns CPU cores to ranks and to their background threads.

#include <c10/core/Device.h>

#include <utility>
#include <vector>

namespace pipewright::exec {

/// Pins the calling thread to one core, so that the kernel does not move it away from its caches.
/// Cores are numbered from 0 among those that the process may use. With fewer cores than ranks this
/// has no effect.
void pin_to_core(int rank, int ranks);

/// Pins the thread of a rank that computes on `device`, if that is the CPU. On a GPU the thread
/// only submits work. Threads that LibTorch and NCCL start from it serve other ranks as well:
/// autograd's thread for the device and the proxies of communicators would all inherit the core of
/// the first rank.
void pin_rank(at::Device device, int rank, int ranks);

/// Pins the calling thread so that the threads it starts, which move a rank's data in the
/// background, share the rank's core. There they run as soon as the rank waits and never delay
/// another rank's compute. If there is a second core for each rank, this has no effect.
void pin_beside(int rank, int ranks);

/// Returns true if there is a second core for each rank, so that background threads take no time
/// from ranks.
bool have_second_cores(int ranks);

/// While it exists, pins threads as for a rank. If there are few cores, all threads of this
/// process, and those that they start, run on the rank's core together with its background threads.
/// Otherwise only the calling thread is pinned.
class OnCoreOfRank {
 public:
  OnCoreOfRank(int rank, int ranks);
  ~OnCoreOfRank();
  OnCoreOfRank(const OnCoreOfRank&) = delete;
  OnCoreOfRank& operator=(const OnCoreOfRank&) = delete;

 private:
  std::vector<std::pair<int, std::vector<int>>> before_;  // the cores of each thread before
};

/// Makes the calling thread, and threads that it starts, run as soon as they have work although all
/// cores compute; for threads that only forward data. The kernel lets a running thread finish its
/// time slice before a thread that wakes up, unless that thread requests shorter slices. Kernels
/// without such requests (Linux before 6.12) ignore this. It does not increase a thread's share of
/// a core.
void run_in_short_slices();

/// Makes the calling thread, and threads that it starts, wait until other threads of their core are
/// idle, or until the kernel's next tick, instead of preempting them.
void interrupt_nobody();

}  // namespace pipewright::exec
