#pragma once

// Training across processes: where this process stands in a job that a launcher started, how it
// meets the others, and how all of them end together when one of them fails.

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipewright/exec/job/environment.hpp"
#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::exec {

class Watch;  // src/job: the threads that look after the others

struct JobOptions {
  std::chrono::milliseconds join_timeout{60'000};
  /// How long a rank may not be heard of before the job ends. It is heard of as long as its process
  /// runs, however long one action takes.
  std::chrono::milliseconds timeout{30'000};
  /// How long no rank may begin anything new, while some are in an action and others wait, before
  /// the job ends: longer than the longest action. 0: as long as it likes.
  std::chrono::milliseconds stall{600'000};
  /// Called on a thread of the job when it has failed and `timeout` later this rank is still in the
  /// same action, such as an endless loop: only the end of the process ends that.
  std::function<void(const std::string& why)> when_stuck{};
};

/// The job could not begin or cannot go on; the message says which rank is the cause.
class JobFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// This process as a member of a job: from the constructor, which waits until all have come, to the
/// destructor. In between it tells the others that it lives and what it does, and notes when one of
/// them no longer does. A job fails once: the first report that reaches the store holds for all.
class Job {
 public:
  /// Throws JobFailure when the store cannot be reached or says who has not come in time.
  explicit Job(JobEnvironment environment, JobOptions options = {});
  /// Leaves the job. The rank that hosts the store stays until all others have left, or a moment
  /// after a failure.
  ~Job();

  int rank() const { return environment_.rank; }
  int size() const { return environment_.size; }
  const JobEnvironment& environment() const { return environment_; }
  const JobOptions& options() const { return options_; }

  /// What this rank is at, for the reports of others. Costs a store and an addition to memory. One
  /// that is `fused_with_next` is told before the other, and reports then name both.
  void doing(const plan::Instruction& instruction);
  /// A phase, which may take as long as it likes: text that lives as long as the process, such as a
  /// literal.
  void doing(const char* phase);

  /// A few words of this rank for all others, which go with its signs of life and replace the last.
  void tell(std::string note);
  /// What the ranks have told last, by rank: half a second old, perhaps.
  std::vector<std::string> told() const;

  /// Ends the job on every rank, unless it has failed already.
  void abort(const std::string& why);
  /// Throws Aborted once the job has failed.
  void require_going() const;
  /// Whether the job has failed and this rank is the one to print the report: so it is printed
  /// once.
  bool reports_failure() const;

  /// For a transport.
  Watch& watch() { return *watch_; }

 private:
  JobEnvironment environment_;
  JobOptions options_;
  std::unique_ptr<Watch> watch_;
  std::optional<plan::Instruction> fused_;  // told last, with what is told next
};

}  // namespace pipewright::exec
