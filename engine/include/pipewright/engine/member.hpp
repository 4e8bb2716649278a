#pragma once

// This process's membership in a training job: one call in the user's own program, for any
// launcher.

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
  bool on_gpu = false;               // NCCL between processes, each with its own GPU
  bool own_multiprocessors = false;  // threads that share a GPU partition it (RankDevice::parts)
  exec::TransferOptions transfers{};
  exec::JobOptions job{};
};

/// One rank of a job that torchrun, Slurm, mpirun or `run_local_job` has started, or a single
/// process with all ranks as threads.
class Member {
 public:
  /// Creates a single process without a job.
  Member();
  /// Joins the job that the environment describes, if any, and opens the devices. Call it before
  /// the first use of LibTorch: it limits LibTorch to one thread, because rounding in kernels
  /// depends on how work is split among threads. Throws InputError if the job's number of processes
  /// differs from the topology's number of ranks or if a device does not exist, and JobFailure if
  /// the processes fail to connect.
  explicit Member(plan::Topology topology, MemberOptions options = {});
  ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  bool in_job() const { return job_ != nullptr; }
  /// Returns true if this is the only process, or rank 0.
  bool is_first() const { return !job_ || job_->rank() == 0; }
  /// Returns nothing if all ranks are threads of this process.
  std::optional<int> rank() const;
  /// Returns the transport for an executor, empty if all ranks are threads of this process.
  const std::shared_ptr<exec::Transport>& transport() const { return transport_; }
  exec::Job* job() { return job_.get(); }
  const exec::Job* job() const { return job_.get(); }

  /// Returns the options that make an engine or executor run this rank: transport, rank, axes and
  /// devices.
  exec::ExecutorOptions execution() const;
  /// Returns the ranks that differ from this one only along `axis`, itself included: the members of
  /// its collectives. Throws InputError for an axis that the topology does not have, and if all
  /// ranks are threads.
  std::vector<int> group_along(const std::string& axis) const;

  /// Broadcasts the first process's text. Every process must call it.
  std::string from_first(const std::string& text) const;
  /// Gathers the texts of all processes, by rank. Every process must call it.
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

/// Returns one GPU per rank if `ranks` ranks are threads of this process. In a job, returns only
/// the GPU of this process's rank, because the others' are not known here.
std::vector<exec::RankDevice> gpus_of(int ranks, const exec::Job* job, bool own_multiprocessors);

/// Runs this process's part of a job. If it throws, the other processes end with its message as the
/// reason instead of waiting for it.
void take_part(Member& member, const std::function<void()>& part);

}  // namespace pipewright::engine
