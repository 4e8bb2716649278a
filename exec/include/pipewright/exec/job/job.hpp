#pragma once

// Training across processes: a process's membership in a job that a launcher started. Covers the
// rendezvous with the other processes, and ending all of them when one fails.

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipewright/exec/job/environment.hpp"
#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::exec {

class Watch;  // src/job: the threads that monitor the other ranks

struct JobOptions {
  std::chrono::milliseconds join_timeout{60'000};
  /// Time without a heartbeat of a rank after which the job ends. A rank sends heartbeats as long
  /// as its process runs, however long one action takes.
  std::chrono::milliseconds timeout{30'000};
  /// Time without a new action on any rank, while some are in an action and others wait, after
  /// which the job ends. Must exceed the longest action. 0: unlimited.
  std::chrono::milliseconds stall{600'000};
  /// Called on a thread of the job if the job has failed and this rank is still in the same action
  /// `timeout` later, such as in an endless loop. Only the end of the process ends that.
  std::function<void(const std::string& why)> when_stuck{};
};

/// Thrown if the job could not begin or cannot continue. The message says which rank is the cause.
class JobFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A process's membership in a job, from the constructor, which blocks until all ranks have joined,
/// to the destructor. In between it sends heartbeats and the current action to the other ranks, and
/// notices when theirs stop. A job fails once: the first report that reaches the store holds for
/// all.
class Job {
 public:
  /// Throws JobFailure if the store cannot be reached, or with the ranks that did not join in time.
  explicit Job(JobEnvironment environment, JobOptions options = {});
  /// Leaves the job. The rank that hosts the store stays until all others have left, or for a
  /// moment after a failure.
  ~Job();

  int rank() const { return environment_.rank; }
  int size() const { return environment_.size; }
  const JobEnvironment& environment() const { return environment_; }
  const JobOptions& options() const { return options_; }

  /// Sets the instruction that this rank executes, for the reports of others. Costs one store and
  /// one addition to memory. An action that is `fused_with_next` is set before the other one, and
  /// reports then name both.
  void doing(const plan::Instruction& instruction);
  /// Sets a phase, which has no time limit. The text must live as long as the process, such as a
  /// literal.
  void doing(const char* phase);

  /// Publishes a short note of this rank to all others with its heartbeats; it replaces the last
  /// one.
  void tell(std::string note);
  /// Returns the last note of each rank, which may be half a second old.
  std::vector<std::string> told() const;

  /// Ends the job on every rank, unless it has failed already.
  void abort(const std::string& why);
  /// Throws Aborted once the job has failed.
  void require_going() const;
  /// Returns true if the job has failed and this rank is the one that prints the report, so that it
  /// is printed once.
  bool reports_failure() const;

  /// For transports.
  Watch& watch() { return *watch_; }

 private:
  JobEnvironment environment_;
  JobOptions options_;
  std::unique_ptr<Watch> watch_;
  std::optional<plan::Instruction> fused_;  // set last, to be reported with the next one
};

}  // namespace pipewright::exec
