#pragma once

// This process among those that train together: alone with all ranks as threads, or one rank of a
// job that torchrun, Slurm, mpirun or `--processes` has started.

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "devices.hpp"
#include "pipewright/exec/job/job.hpp"
#include "pipewright/exec/transport/transport.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::cli {

class Membership {
 public:
  /// Alone.
  Membership() = default;
  /// Joins the job that the environment describes, if there is one. Throws InputError when it has
  /// another number of processes than the scenario has ranks, JobFailure when they do not meet.
  Membership(const plan::Scenario& scenario, const Patience& patience, const DeviceOptions& device);

  bool in_job() const { return job_.has_value(); }
  /// Whether this process speaks for all: the only one, or rank 0.
  bool is_first() const { return !job_ || job_->rank() == 0; }
  std::optional<int> rank() const;
  /// For the executor; empty when all ranks are threads of this process.
  const std::shared_ptr<exec::Transport>& transport() const { return transport_; }
  exec::Job* job() { return job_ ? &*job_ : nullptr; }
  std::chrono::milliseconds stall() const { return stall_; }

  /// What the first process says; every process calls it.
  std::string from_first(const std::string& text) const;
  /// What each process says, by rank; every process calls it.
  std::vector<std::string> from_all(const std::string& text) const;
  std::vector<exec::Tensors> from_all(const exec::Tensors& tensors) const;

  /// A message that is worth saying once.
  void say_once(const std::string& message) const;

 private:
  std::chrono::milliseconds stall_ = exec::JobOptions{}.stall;
  std::optional<exec::Job> job_;
  std::shared_ptr<exec::Transport> transport_;
};

/// Whether the environment describes a job.
bool started_by_launcher();

/// Starts this program again `count` times with the same words but `--processes`, as the ranks of a
/// job on this machine, and waits for them. Returns the exit code: of a rank that failed, if one
/// did.
int run_as_processes(int count, double timeout_s);

}  // namespace pipewright::cli
