#pragma once

// A core for each rank, and when threads beside the ranks get one.

#include <c10/core/Device.h>

#include <utility>
#include <vector>

namespace pipewright::exec {

/// Keeps the calling thread on one core, so that the kernel does not move it away from its caches.
/// The cores that the process may use are counted from 0; with fewer cores than ranks nothing
/// happens.
void pin_to_core(int rank, int ranks);

/// The same for a rank that computes on `device`, where that is the CPU. On a GPU its thread only
/// hands out work, and what LibTorch and NCCL start from it serves other ranks as well: autograd's
/// thread for the device and the proxies of communicators would all have the core of whoever came
/// first.
void pin_rank(at::Device device, int rank, int ranks);

/// For the threads that this one starts, which move the data of a rank beside it: on its core,
/// where they run as soon as it waits and never wait for another rank's compute. Where there is a
/// second core for each rank nothing happens.
void pin_beside(int rank, int ranks);

/// Whether there is one, so that threads beside the ranks take nothing from them.
bool have_second_cores(int ranks);

/// While it lives all threads of this process, and those that they start, stand as those of a rank
/// do: on its core with those beside it where cores are few, otherwise as they were.
class OnCoreOfRank {
 public:
  OnCoreOfRank(int rank, int ranks);
  ~OnCoreOfRank();
  OnCoreOfRank(const OnCoreOfRank&) = delete;
  OnCoreOfRank& operator=(const OnCoreOfRank&) = delete;

 private:
  std::vector<std::pair<int, std::vector<int>>> before_;  // by thread: its cores
};

/// For a thread that only hands data on: it and the threads that it starts run as soon as they have
/// something to do, though all cores compute. A kernel lets a thread compute for a slice of time
/// before another one that wakes may run, unless that asks for shorter slices; where it does not
/// know them (Linux before 6.12) nothing changes. Nobody gets a larger share of a core by it.
void run_in_short_slices();

/// For a thread that may not interrupt others: it and the threads that it starts run when those of
/// their core rest, or at the kernel's next tick.
void interrupt_nobody();

}  // namespace pipewright::exec
