#include "pipewright/exec/rank/core.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

namespace pipewright::exec {
namespace {

/// As the kernel has it; the C library knows neither this nor the calls.
struct SchedulingAttributes {
  std::uint32_t size, policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t slice_ns, deadline_ns, period_ns;
};

constexpr std::uint32_t ordinary = 0;        // SCHED_OTHER
constexpr std::uint64_t short_ns = 100'000;  // the shortest that the kernel grants

std::vector<int> allowed_cores() {
  cpu_set_t allowed;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &allowed))
        cores.push_back(core);
  return cores;
}

}  // namespace

void pin_to_core(int rank, int ranks) {
  const auto allowed = allowed_cores();
  if (static_cast<int>(allowed.size()) < ranks)
    return;
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(allowed[static_cast<std::size_t>(rank)], &own);
  sched_setaffinity(0, sizeof own, &own);
}

void pin_beside(int rank, int ranks) {
  if (static_cast<int>(allowed_cores().size()) < 2 * ranks)
    pin_to_core(rank, ranks);
}

void run_in_short_slices() {
  SchedulingAttributes own{};
  if (syscall(SYS_sched_getattr, 0, &own, sizeof own, 0) != 0 || own.policy != ordinary)
    return;
  own.slice_ns = short_ns;
  syscall(SYS_sched_setattr, 0, &own, 0);
}

}  // namespace pipewright::exec
