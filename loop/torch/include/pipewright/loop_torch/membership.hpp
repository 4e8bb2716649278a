#pragma once

// The place of this process in a training: the only process, with all ranks as threads, or one rank
// of a job that torchrun, Slurm, mpirun or `--processes` has started.

#include <chrono>
#include <functional>
#include <string>

#include "pipewright/engine/member.hpp"
#include "pipewright/exec/job/job_rank.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::loop {

/// How long ranks wait for each other before the job fails, and how a hang is reported.
struct MembershipOptions {
  bool on_gpu = false;  // NCCL, one GPU per process
  /// Until a silent process counts as lost.
  std::chrono::milliseconds timeout = exec::JobOptions{}.timeout;
  /// Until a job in which no action ends counts as hung; 0 disables it.
  std::chrono::milliseconds stall = exec::JobOptions{}.stall;
  /// Called on another thread if only terminating the process can end a hang. `report` is empty if
  /// another process reports the failure.
  std::function<void(const std::string& report)> give_up{};
};

/// Returns the coordinates of all ranks of a training.
exec::JobGrid grid_of(const plan::Pipeline& pipeline);

/// The place of a process in the training of its scenario.
class Membership final : public engine::Member {
 public:
  /// A process that trains alone.
  Membership() = default;
  /// Joins the job that the environment describes, if there is one. Throws InputError if the job
  /// and the scenario differ in their number of ranks, and JobFailure if the processes do not find
  /// each other.
  Membership(const plan::Scenario& scenario, const MembershipOptions& options);
};

}  // namespace pipewright::loop
