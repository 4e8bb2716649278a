#pragma once

// Ranks that are processes: they start this test program again with one of its hidden test cases.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/exec/job/environment.hpp"
#include "pipewright/exec/job/job.hpp"

namespace pipewright::test {

/// The place of this process, from its parent; for hidden test cases. Empty if a person started the
/// process by hand. Sets an alarm, so that a rank that hangs ends in any case.
struct RankPlace {
  exec::JobEnvironment environment;
  std::string argument;  // passed on by the test
};
std::optional<RankPlace> rank_place();

/// Sends a line to the parent; for hidden test cases.
void say(const std::string& line);

/// Returns a port that is not in use now.
int free_port();

/// The number of processes, their test case, and their addresses.
struct RanksSetup {
  int size = 0;
  std::string test_case;
  std::string argument = "";
  std::string address = "127.0.0.1";
  std::map<int, std::vector<std::string>> commands = {};  // prefix of each rank's, like `ip`
};

class Ranks {
 public:
  explicit Ranks(const RanksSetup& setup);
  /// Kills the processes that are still running.
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  /// Blocks until this rank has sent that line. Returns false if it ended without.
  bool await_line(int rank, const std::string& line);
  void signal(int rank, int number) const;
  /// Returns the ids of all processes.
  std::vector<int> ids() const;
  /// Returns all that the rank has sent, once its process has ended.
  std::string said(int rank);
  /// Returns the exit code of the process, or 128 plus the signal that ended it. Call after `said`.
  int status(int rank);

 private:
  struct Process {
    int id = 0;
    int pipe = 0;
    std::string output;
    std::optional<int> status;
  };
  bool read_more(Process& process);
  Process& process(int rank) { return processes_.at(static_cast<std::size_t>(rank)); }

  std::vector<Process> processes_;
};

}  // namespace pipewright::test
