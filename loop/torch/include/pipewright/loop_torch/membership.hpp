#pragma once

// This process among those that train together: alone with all ranks as threads, or one rank of a
// job that torchrun, Slurm, mpirun or `--processes` has started.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/exec/job/job.hpp"
#include "pipewright/exec/job/job_rank.hpp"
#include "pipewright/exec/transport/transport.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::loop {

/// How long ranks wait for each other before the job fails, and what is done then.
struct MembershipOptions {
  bool on_gpu = false;                                             // NCCL, one GPU per process
  std::chrono::milliseconds timeout = exec::JobOptions{}.timeout;  // for one that is not heard of
  std::chrono::milliseconds stall = exec::JobOptions{}.stall;      // while no action ends; 0: ever
  /// Called, on another thread, where only the end of the process ends what hangs. `report` is
  /// empty where another process says it.
  std::function<void(const std::string& report)> give_up{};
};

/// Who is where among the ranks of a training.
exec::JobGrid grid_of(const plan::Pipeline& pipeline);

class Membership {
 public:
  /// Alone.
  Membership() = default;
  /// Joins the job that the environment describes, if there is one. Throws InputError when it has
  /// another number of processes than the scenario has ranks, JobFailure when they do not meet.
  Membership(const plan::Scenario& scenario, const MembershipOptions& options);

  bool in_job() const { return job_.has_value(); }
  /// Whether this process speaks for all: the only one, or rank 0.
  bool is_first() const { return !job_ || job_->rank() == 0; }
  std::optional<int> rank() const;
  /// For the executor; empty when all ranks are threads of this process.
  const std::shared_ptr<exec::Transport>& transport() const { return transport_; }
  exec::Job* job() { return job_ ? &*job_ : nullptr; }

  /// What the first process says; every process calls it.
  std::string from_first(const std::string& text) const;
  /// What each process says, by rank; every process calls it.
  std::vector<std::string> from_all(const std::string& text) const;
  std::vector<exec::Tensors> from_all(const exec::Tensors& tensors) const;

 private:
  std::optional<exec::Job> job_;
  std::shared_ptr<exec::Transport> transport_;
};

/// Runs this process's part of a job. The other processes do not wait for one whose part throws:
/// they end, with what it says as the reason.
void take_part(Membership& members, const std::function<void()>& part);

}  // namespace pipewright::loop
