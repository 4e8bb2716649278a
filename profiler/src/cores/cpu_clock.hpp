#pragma once

// CPU time of threads, in seconds.

#include <ctime>

namespace pipewright::profiler {

inline double clock_seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

inline double cpu_of_process() { return clock_seconds(CLOCK_PROCESS_CPUTIME_ID); }
inline double cpu_of_this_thread() { return clock_seconds(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace pipewright::profiler
