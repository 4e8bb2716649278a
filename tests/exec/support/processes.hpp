#pragma once

// Ranks that are processes: this test program again, running one of its hidden test cases.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/exec/job/environment.hpp"
#include "pipewright/exec/job/job.hpp"

namespace pipewright::test {

/// For the hidden test case: where this process stands, told by its parent; nothing where somebody
/// has started it by hand. Sets an alarm, so that a rank that hangs ends all the same.
struct RankPlace {
  exec::JobEnvironment environment;
  std::string argument;  // whatever the test passes on
};
std::optional<RankPlace> rank_place();

/// For the hidden test case: adds a line to what the parent gets.
void say(const std::string& line);

/// A port that nobody listens on now.
int free_port();

/// How many processes, what they run, and where.
struct RanksSetup {
  int size = 0;
  std::string test_case;
  std::string argument = "";
  std::string address = "127.0.0.1";
  std::map<int, std::vector<std::string>> commands = {};  // in front of a rank's own, such as `ip`
};

class Ranks {
 public:
  explicit Ranks(const RanksSetup& setup);
  /// Kills those that still run.
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  /// Until this rank has said that line; false when it has ended without.
  bool await_line(int rank, const std::string& line);
  void signal(int rank, int number) const;
  /// Of all processes.
  std::vector<int> ids() const;
  /// All that the rank has said, once its process has ended.
  std::string said(int rank);
  /// Of the process: its exit code, or 128 and the signal that ended it. After `said`.
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
