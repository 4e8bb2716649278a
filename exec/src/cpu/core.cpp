#include "pipewright/exec/cpu/core.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

namespace pipewright::exec {
namespace {

/// The kernel's `struct sched_attr`. The C library has neither this type nor its system calls.
struct SchedulingAttributes {
  std::uint32_t size, policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t slice_ns, deadline_ns, period_ns;
};

constexpr std::uint32_t ordinary = 0;        // SCHED_OTHER
constexpr std::uint64_t short_ns = 100'000;  // the shortest that the kernel grants

/// Returns the cores that a thread of this process may use; 0 stands for the calling thread.
std::vector<int> cores_of(pid_t thread) {
  cpu_set_t allowed;
  std::vector<int> cores;
  if (sched_getaffinity(thread, sizeof allowed, &allowed) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &allowed))
        cores.push_back(core);
  return cores;
}

void keep_on(pid_t thread, const std::vector<int>& cores) {
  cpu_set_t own;
  CPU_ZERO(&own);
  for (const int core : cores)
    CPU_SET(core, &own);
  sched_setaffinity(thread, sizeof own, &own);
}

/// Returns true if the background threads of ranks cannot have cores of their own.
bool are_cores_few(std::size_t cores, int ranks) { return static_cast<int>(cores) < 2 * ranks; }

}  // namespace

void pin_to_core(int rank, int ranks) {
  const auto allowed = cores_of(0);
  if (static_cast<int>(allowed.size()) >= ranks)
    keep_on(0, {allowed[static_cast<std::size_t>(rank)]});
}

void pin_rank(at::Device device, int rank, int ranks) {
  if (device.is_cpu())
    pin_to_core(rank, ranks);
}

void pin_beside(int rank, int ranks) {
  if (are_cores_few(cores_of(0).size(), ranks))
    pin_to_core(rank, ranks);
}

bool have_second_cores(int ranks) { return !are_cores_few(cores_of(::getpid()).size(), ranks); }

OnCoreOfRank::OnCoreOfRank(int rank, int ranks) {
  const auto allowed = cores_of(0);
  if (static_cast<int>(allowed.size()) < ranks)
    return;
  const std::vector<int> own{allowed[static_cast<std::size_t>(rank)]};
  if (!are_cores_few(allowed.size(), ranks)) {
    before_.emplace_back(gettid(), allowed);
    keep_on(0, own);  // the calling thread alone
    return;
  }
  std::error_code ended;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ended)) {
    const pid_t thread = std::stoi(task.path().filename());
    before_.emplace_back(thread, cores_of(thread));
    keep_on(thread, own);
  }
}

OnCoreOfRank::~OnCoreOfRank() {
  for (const auto& [thread, cores] : before_)
    keep_on(thread, cores);
}

void run_in_short_slices() {
  SchedulingAttributes own{};
  if (syscall(SYS_sched_getattr, 0, &own, sizeof own, 0) != 0 || own.policy != ordinary)
    return;
  own.slice_ns = short_ns;
  syscall(SYS_sched_setattr, 0, &own, 0);
}

void interrupt_nobody() {
  const sched_param none{};
  sched_setscheduler(0, SCHED_BATCH, &none);
}

}  // namespace pipewright::exec
