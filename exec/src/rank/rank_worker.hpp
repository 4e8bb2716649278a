#pragma once

// The interpreter: runs one rank's list of instructions, whatever schedule they came from.

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>

#include "device/lane.hpp"
#include "job/watch.hpp"
#include "moment.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "reduce_lane.hpp"
#include "reductions.hpp"
#include "stage/gradient_norm.hpp"
#include "stage/stage.hpp"

namespace pipewright::exec {

/// Which rank of the job this is: the rank of a pipeline, and which of the pipelines side by side.
struct GridPlace {
  int rank = 0;
  int replica = 0;
  int replicas = 1;
  /// Ranks of the job: the pipelines' copies of one rank are neighbours.
  int of(int pipeline_rank) const { return pipeline_rank * replicas + replica; }
  int self() const { return of(rank); }
};

class RankWorker {
 public:
  static constexpr const char* end_of_step = "the end of a step";

  /// Builds the rank's stages on its device, charged to the rank's memory account. References are
  /// kept.
  RankWorker(GridPlace place, const RankDevice& device, const plan::Program& program,
             const plan::Partition& partition, const TrainingSetup& setup,
             const ExecutorOptions& options, Transport& transport);

  /// Runs the list of `program` once, on a GPU until all of it has been computed: the Program that
  /// it was built for, or an inference over the same stages. Throws Aborted when it was stopped,
  /// RankFailure naming rank and instruction when its work threw.
  void run(const plan::Program& program, const Pass& pass, Clock::time_point step_begin);

  GridPlace place() const { return place_; }
  const std::map<int, std::unique_ptr<Stage>>& stages() const { return stages_; }
  LossScaler& scaler() { return scaler_; }
  const MemoryAccount& account() const { return account_; }
  const Lane& lane() const { return compute_; }
  /// What it is at and how often it has begun something, for another thread. Between passes, and
  /// when it is done with one, it waits for all others.
  Beat beat() const;
  /// Of the last step: before clipping, 0 where nobody asked; and whether it was skipped.
  double gradient_norm() const { return gradient_norm_; }
  bool skipped() const { return skipped_; }

 private:
  void build_stages(const plan::Partition& partition);
  void run_one(const plan::Instruction& i);
  void perform(const plan::Instruction& i);
  void expect_transfers();
  void post(const plan::Instruction& receive);
  void complete(const plan::Instruction& receive);
  void fetch_input(const plan::Instruction& i);
  void lay_down(const plan::Instruction& receive, Tensors tensors);
  void hand_on(const plan::Instruction& i);
  void reduce(const plan::Instruction& i);
  void reduce_now(const plan::Instruction& i);
  void reduce_tied_weights();
  void reduce_copies_of(int stage);
  void reduce_tied_within(const std::vector<Stage*>& stages);
  void drain_reductions();
  void optimizer_step(Stage& stage);
  int step_every() const;
  void look_at_gradients();
  void finish_device();
  template <class Name, class Work>
  void named(const Name& name, const Work& work) const;
  InstructionRecord record_of(const plan::Instruction& i, plan::Bytes held_before) const;
  Moment moment() const { return Moment::now(options_.observer != nullptr); }
  void note(const plan::Instruction& i, const Moment& begin, plan::Bytes held_before);
  void tell_in_time(const Noted& noted);
  void tell(const Noted& noted) const;
  void say_starting(const plan::Instruction& i);
  bool stopped() const;
  bool lives_here(int stage, int microbatch) const;
  Transfer transfer_of(const plan::Instruction& i) const;
  Members members(const std::vector<int>& pipeline_ranks, bool all_replicas) const;
  Stage& stage(int index) { return *stages_.at(index); }

  GridPlace place_;
  const plan::Program& trained_;
  const TrainingSetup& setup_;
  const ExecutorOptions& options_;
  Transport& transport_;
  MemoryAccount account_;
  Lane compute_, incoming_, reducing_;  // incoming: receives
  std::map<int, std::unique_ptr<Stage>> stages_;
  std::set<std::pair<int, int>> recomputed_;  // (stage, microbatch) of the trained Program
  std::vector<int> tied_ranks_;               // of a pipeline, that reduce tied weights
  std::set<int> tied_stages_;                 // of this rank
  int last_tied_stage_ = -1;                  // of this rank's instructions that do
  bool reduces_copies_ = false;               // the trained Program does

  ReduceLane reductions_;
  // Both written by that lane until it is drained.
  std::vector<Noted> reduced_;
  Mark reductions_done_;

  const plan::Program* program_ = nullptr;  // that runs
  Pass pass_;
  std::map<plan::InstructionKey, Moment> posted_;  // receives whose data nothing has needed yet
  std::map<plan::InstructionKey, Tensors>
      handed_over_;  // between stages of this rank, by their receive
  // Written by the rank's thread, read by others.
  std::atomic<std::uint64_t> at_{activity_of(end_of_step)};
  std::atomic<int> waits_for_{-1};  // a rank
  std::atomic<long> moves_{0};

  Moment begin_;  // of the step, on this rank
  plan::Seconds begin_in_step_;
  std::vector<Noted> late_;  // what a GPU has not told yet

  LossScaler scaler_;
  bool looked_at_gradients_ = false;
  at::Tensor scaled_norm_;  // undefined where nobody asks
  GradientUse gradient_use_;
  double gradient_norm_ = 0;
  bool skipped_ = false;
};

}  // namespace pipewright::exec
