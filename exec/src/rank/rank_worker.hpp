#pragma once

// The interpreter of one rank's list of instructions, of any schedule.

#include <map>
#include <memory>

#include "background_thread.hpp"
#include "collectives.hpp"
#include "inbox.hpp"
#include "pipewright/exec/data/read_ahead.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/exec/stage/gradient_norm.hpp"
#include "pipewright/exec/stage/stage.hpp"
#include "progress.hpp"
#include "rank_shards.hpp"
#include "stopwatch.hpp"

namespace pipewright::exec {

class RankWorker {
 public:
  /// Builds the rank's stages on its device, charged to the rank's memory account. Keeps references
  /// to its arguments. `job_ranks` is the number of ranks in the job.
  RankWorker(JobRank job_rank, const RankDevice& device, const plan::Program& program,
             const plan::Partition& partition, const TrainingSetup& setup,
             const ExecutorOptions& options, Transport& transport, int job_ranks);
  ~RankWorker();
  RankWorker(const RankWorker&) = delete;
  RankWorker& operator=(const RankWorker&) = delete;

  /// Runs the rank's list of `program` once and returns when the device has done all of it.
  /// `program` is the one that the worker was built for, or an inference over the same stages.
  /// Throws Aborted when it was stopped, and RankFailure with rank and instruction when its work
  /// threw.
  void run(const plan::Program& program, const Pass& pass, Clock::time_point step_begin);

  /// Stops reading data, after a pass that has failed.
  void stop_reading() { reader_.stop(); }

  JobRank job_rank() const { return job_rank_; }
  const Stages& stages() const { return stages_; }
  LossScaler& scaler() { return scaler_; }
  const MemoryAccount& account() const { return account_; }
  const Stream& stream() const { return compute_; }
  /// Returns the rank's heartbeat. Called by other threads.
  Heartbeat beat() const;
  /// Returns the norm of the last step's gradients before clipping; 0 if it was not computed.
  double gradient_norm() const { return gradient_norm_; }
  /// Returns true if the last step was skipped, because a gradient was not finite.
  bool skipped() const { return skipped_; }
  /// Returns the losses of the last pass, as Collectives::losses does.
  const std::vector<MicrobatchLoss>& losses() const { return collectives_.losses(); }

 private:
  void build_stages(const plan::Partition& partition);
  TensorParallelPlace place();
  std::function<void()> beside_rank(int job_ranks) const;
  void expect_data();
  template <class Work>
  void named(const plan::Instruction& i, const Work& work) const;
  void perform(const plan::Instruction& i);
  void await_input(const plan::Instruction& i);
  void compute(const plan::Instruction& i);
  void compute_as_it_is(const plan::Instruction& i);
  bool takes_turns(const plan::Instruction& first, const plan::Instruction& second) const;
  void run_pair(const plan::Instruction& first, const plan::Instruction& second);
  void run_in_turns(const plan::Instruction& first, const plan::Instruction& second);
  void run_own_pair(const plan::Instruction& first, const plan::Instruction& second);
  template <class Work>
  void timed(const plan::Instruction& i, const Work& work);
  template <class Work>
  void noted(const plan::Instruction& i, const Work& work);
  void optimizer_step(const plan::Instruction& i);
  void end_pass();
  bool stopped() const;
  bool meets_others() const { return job_rank_.shards > 1 || job_rank_.expert_ranks > 1; }

  const JobRank job_rank_;
  const plan::Program& trained_;
  const TrainingSetup& setup_;
  const ExecutorOptions& options_;
  Transport& transport_;
  MemoryAccount account_;
  Stream compute_;
  Stages stages_;

  Progress progress_;
  Stopwatch stopwatch_;
  RankShards shards_, experts_;
  Inbox inbox_;
  Collectives collectives_;
  BackgroundThread second_;  // runs the second action of a pair that takes turns
  ReadAhead reader_;

  const plan::Program* program_ = nullptr;  // the running one
  Pass pass_;
  LossScaler scaler_;
  double gradient_norm_ = 0;
  bool skipped_ = false;
};

}  // namespace pipewright::exec
