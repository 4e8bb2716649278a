#pragma once

// A job on this machine alone: one program, started once for each rank.

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
  std::vector<std::string> words;  // of its command line, its name first
  int ranks = 1;
  /// Where each rank runs, by rank: what it is told as LOCAL_RANK. Empty: 0, 1, …
  std::vector<int> places{};
  /// A single process that is told of no job: it has all ranks itself.
  bool alone = false;
  /// Ranks end each other when one fails; who has not ended so long after that is killed. While a
  /// rank has not met the others yet, all are killed a second after.
  std::chrono::milliseconds grace{40'000};
  /// Asked every so often: once it holds, every rank gets a SIGTERM.
  std::function<bool()> stop{};
  /// Who is stopped (SIGSTOP) for so long is killed, or for half a second when another has failed:
  /// it cannot end itself. 0: then alone.
  std::chrono::milliseconds stopped{0};
  std::function<void(const std::string& message)> say{};  // which rank a signal has ended
  std::function<void(int rank)> lost{};              // the same, or that it did not end in time
  std::function<void(int rank, int code)> failed{};  // ended by itself, with this exit code, not 0
};

/// Whether this process is the single one of a job that is `alone`.
bool is_alone_in_local_job();

/// Starts the ranks, each told by its environment which one it is (environment.hpp), and waits for
/// them. Returns 0, or the exit code of the first that failed: 1 where a signal ended it, 127 where
/// the program could not start. Throws std::runtime_error where a process cannot be made.
int run_local_job(const LocalJob& job);

}  // namespace pipewright::exec
