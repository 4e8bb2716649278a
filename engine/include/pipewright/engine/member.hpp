#pragma once

// This process among those that train together: one call in a program of one's own, whichever
// launcher has started it.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/exec/job/job.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/plan/cluster/topology.hpp"

namespace pipewright::engine {

struct MemberOptions {
  bool on_gpu = false;               // NCCL between processes, each with a GPU
  bool own_multiprocessors = false;  // threads that share a GPU divide it (RankDevice::parts)
  exec::TransferOptions transfers{};
  exec::JobOptions job{};
};

/// One rank of a job that torchrun, Slurm, mpirun or `run_local_job` has started, or alone with all
/// ranks as threads.
class Member {
 public:
  /// Alone.
  Member();
  /// Joins the job that the environment describes, if there is one, and opens the devices; to be
  /// called before LibTorch is used, for which it sets one thread (kernels round where the shares
  /// of threads end). Throws InputError when the job has another number of processes than the
  /// topology has ranks or there is no such device, JobFailure when the processes do not meet.
  explicit Member(plan::Topology topology, MemberOptions options = {});
  ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  bool in_job() const { return job_ != nullptr; }
  /// Whether this process speaks for all: the only one, or rank 0.
  bool is_first() const { return !job_ || job_->rank() == 0; }
  /// Nothing where all ranks are threads of this process.
  std::optional<int> rank() const;
  /// For an executor; empty where all ranks are threads of this process.
  const std::shared_ptr<exec::Transport>& transport() const { return transport_; }
  exec::Job* job() { return job_.get(); }
  const exec::Job* job() const { return job_.get(); }

  /// What makes an engine or an executor one with this rank: transport, rank, axes and devices.
  exec::ExecutorOptions execution() const;
  /// The ranks that differ from this one along `axis` alone, itself included: who talks to whom in
  /// its collectives. Throws InputError for an axis that the topology does not have, and where all
  /// ranks are threads.
  std::vector<int> group_along(const std::string& axis) const;

  /// What the first process says; every process calls it.
  std::string from_first(const std::string& text) const;
  /// What each process says, by rank; every process calls it.
  std::vector<std::string> from_all(const std::string& text) const;
  std::vector<exec::Tensors> from_all(const exec::Tensors& tensors) const;

 protected:
  /// Joins a job of any size.
  void join(const exec::JobEnvironment& environment, const MemberOptions& options);

 private:
  plan::Topology topology_;
  std::vector<exec::RankDevice> devices_;
  std::unique_ptr<exec::Job> job_;
  std::shared_ptr<exec::Transport> transport_;
};

/// A GPU for each of `ranks` ranks that are threads of this process, or for the one that it is in
/// `job` (what others have is not known here).
std::vector<exec::RankDevice> gpus_of(int ranks, const exec::Job* job, bool own_multiprocessors);

/// Does this process's part of a job. The other processes do not wait for one whose part throws:
/// they end, with what it says as the reason.
void take_part(Member& member, const std::function<void()>& part);

}  // namespace pipewright::engine
