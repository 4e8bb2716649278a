#pragma once

// A job on this machine: one program, started once for each rank.

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace pipewright::exec {

struct LocalJob {
  std::string program = "/proc/self/exe";
  /// The program as a function of `words`, which returns the exit code. If it is set and this
  /// process has one thread, a rank is a fork of this process that calls it: libraries stay loaded,
  /// which saves 0.5 s of CPU a rank with LibTorch. Otherwise a rank executes `program`.
  std::function<int(const std::vector<std::string>& words)> main{};
  std::vector<std::string> words;  // its command line, starting with its name
  int ranks = 1;
  /// The LOCAL_RANK of each rank, which chooses its device. Empty: 0, 1, …
  std::vector<int> places{};
  /// Starts a single process that gets no job and has all ranks itself.
  bool alone = false;
  /// Ranks end each other when one fails; a rank that has not ended after this time is killed. If a
  /// rank has not joined yet, all are killed after a second.
  std::chrono::milliseconds grace{40'000};
  /// Polled; once it returns true, every rank gets a SIGTERM.
  std::function<bool()> stop{};
  /// A process that is stopped (SIGSTOP) for this long is killed, because it cannot end itself;
  /// after half a second if another rank has failed. 0: only if another has failed.
  std::chrono::milliseconds stopped{0};
  std::function<void(const std::string& message)> say{};  // reports the rank that a signal ended
  std::function<void(int rank)> lost{};  // called if a signal ended it or it did not end in time
  std::function<void(int rank, int code)> failed{};  // called if it exited with a nonzero code
};

/// Returns true if this process is the single one of a job that is `alone`.
bool is_alone_in_local_job();

/// Starts the ranks, each with its rank in its environment (environment.hpp), and waits for them.
/// Returns 0, or the exit code of the first that failed: 1 if a signal ended it, 127 if the program
/// could not start. Throws std::runtime_error if a process cannot be created.
int run_local_job(const LocalJob& job);

}  // namespace pipewright::exec
