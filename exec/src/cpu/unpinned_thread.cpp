#include "unpinned_thread.hpp"

#include <sched.h>
#include <unistd.h>

#include "pipewright/exec/cpu/core.hpp"

namespace pipewright::exec {

std::thread unpinned_thread(std::function<void()> body) {
  return std::thread([body = std::move(body)] {
    cpu_set_t allowed;
    // The process's affinity is that of its first thread, which is not pinned.
    if (sched_getaffinity(::getpid(), sizeof allowed, &allowed) == 0)
      sched_setaffinity(0, sizeof allowed, &allowed);
    run_in_short_slices();
    body();
  });
}

}  // namespace pipewright::exec
