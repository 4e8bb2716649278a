#pragma once

// This process among those that train together: alone with all ranks as threads, or one rank of a
// job that torchrun, Slurm, mpirun or `--processes` has started.

#include <chrono>
#include <functional>
#include <string>

#include "pipewright/engine/member.hpp"
#include "pipewright/exec/job/job_rank.hpp"
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

/// What a process is for the scenario that it trains.
class Membership final : public engine::Member {
 public:
  /// Alone.
  Membership() = default;
  /// Joins the job that the environment describes, if there is one. Throws InputError when it has
  /// another number of processes than the scenario has ranks, JobFailure when they do not meet.
  Membership(const plan::Scenario& scenario, const MembershipOptions& options);
};

}  // namespace pipewright::loop
