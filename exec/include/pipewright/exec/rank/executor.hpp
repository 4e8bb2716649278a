#pragma once

// Runs a Program on real tensors: one thread per rank, for all ranks of this process. There is no
// schedule in here; each rank interprets its list of instructions.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "pipewright/exec/device/devices.hpp"
#include "pipewright/exec/job/job_rank.hpp"
#include "pipewright/exec/memory/memory_meter.hpp"
#include "pipewright/exec/rank/fused_pair.hpp"
#include "pipewright/exec/training/training_setup.hpp"
#include "pipewright/exec/transport/transport.hpp"
#include "pipewright/plan/partition/partition.hpp"
#include "pipewright/plan/program/program.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::exec {

/// What happened when a rank ran one instruction; times count from the start of the step.
struct InstructionRecord {
  int rank = 0;  // of the job
  plan::Instruction instruction;
  plan::Seconds start;
  plan::Seconds end;
  plan::Bytes held_before;
  plan::Bytes peak;  // most held while it ran; of two that take turns, since the first began
  plan::Bytes held_after;
  /// Of its time: in collectives of shards, waiting for others included; of two that take turns,
  /// without what went on beside the other.
  plan::Seconds shards{};
  plan::Seconds late{};  // of that: it waited for one that was late (late_members.hpp)
};

/// Called on the rank's own thread after each instruction, after the second of two that take turns
/// for both, whose times then overlap; for a rank on a GPU, or one that shares out its stages with
/// others, at the end of the step, for all of them. Calls of different ranks overlap.
using Observer = std::function<void(const InstructionRecord&)>;

struct ExecutorOptions {
  Observer observer{};  // empty: nothing is recorded
  /// Called on the rank's own thread with what it does next; with a receive when it waits for it.
  /// Of a fused pair that takes turns, with one that is `fused_with_next` and then with the other.
  std::function<void(const plan::Instruction&)> starting{};
  /// Told of the tensors of each rank of this process that computes on the CPU, from its first
  /// parameter on.
  std::function<void(int rank, const AllocationEvent&)> allocations{};
  /// Called on the rank's own thread in place of a fused pair; what it throws is named as the pair.
  /// One that has not run both when it returns is a failure. Empty: both, as `FusedPair::run_both`.
  std::function<void(const FusedPair&)> run_pair{};
  /// Called on the rank's own thread in place of each action (F, B, I, W and R), also of a pair's;
  /// what it throws is named as the action. One that has not run it when it returns is a failure.
  std::function<void(const OwnAction&)> run_action{};
  const std::atomic<bool>* stop = nullptr;  // set from anywhere: the step ends early
  bool pin_threads = true;  // a core for each rank that computes on the CPU, when there are enough
  /// Where all ranks are threads of this process: called on another thread, once, when no rank has
  /// begun anything for so long in a pass. Only the end of the process ends a thread that hangs.
  /// 0: never; longer than the longest action, on a GPU than the longest step.
  std::chrono::milliseconds stall{0};
  std::function<void(const std::string& why)> when_stalled{};
  /// Captures what a stage does with a microbatch (F, R, B, I and W, each) as CUDA graphs in the
  /// second step, a set for each buffer of the stage, and replays them from then on: one launch for
  /// each, with the same bits. Sizes must not change, and stages with layers that draw random
  /// numbers or vary run as without. On the CPU all runs as ever, from and to fixed memory.
  bool cuda_graphs = false;
  /// Microbatches of a rank that are read, on a thread beside its own, before it comes to their
  /// LOADs, at most; 0: each is read when its LOAD is reached. Those of a step that goes on begin
  /// in the one before.
  int read_ahead = 0;
  bool dynamic_shapes = false;  // tensors between stages may differ from microbatch to microbatch
  int replicas = 1;             // pipelines side by side, whose gradients the Program sums
  int shards = 1;  // that share out what can be cut of each stage, each on a rank of its own
  /// Of the replicas so many in a row share out the experts of layers that have some, and send each
  /// other their tokens. Where there are several, the Program has a flush.
  int expert_ranks = 1;
  /// Which rank of the job is which of these: see JobGrid.
  std::vector<std::string> axes{"pipe", "data", "tensor"};
  /// By rank of the job: where it computes. Empty: on the CPU.
  std::vector<RankDevice> devices{};
  /// Where the other ranks are not threads of this process: how to reach them, and which rank of
  /// the job this process is. Empty: all ranks are here.
  std::shared_ptr<Transport> transport{};
  std::optional<int> only_rank{};
};

/// A rank's work threw: names rank, action and cause.
class RankFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct StepOptions {
  bool goes_on = false;  // the next step is that of `step` + 1, whose data is read ahead
  bool outputs = false;  // hand out the last stage's outputs
};

struct StepResult {
  double loss = 0;           // over the step's microbatches, of all replicas: their weighted mean
  plan::Seconds begin;       // by the machine's steady clock
  plan::Seconds duration;    // until the last rank of this process was done
  double gradient_norm = 0;  // before clipping; 0 unless gradients are clipped or scaled
  bool skipped = false;      // a gradient was not finite: no parameter was changed
  /// By microbatch of the batch, as the loss function gave them.
  std::vector<double> losses{};
  /// As of an Evaluation.
  std::vector<Tensors> outputs{};
};

struct EvaluationPass {
  bool outputs = false;  // hand out the last stage's outputs
  bool loss = true;      // without one, targets are not read
};

struct Evaluation {
  /// Over the batch and by microbatch, as of a step. Without a loss, or where the Program does not
  /// share it and the last stage is in another process: 0, and none.
  double loss = 0;
  std::vector<double> losses{};
  /// By microbatch of the batch, where asked for and where the last stage is in this process.
  std::vector<Tensors> outputs{};
};

/// Who is where when a Program runs so.
JobGrid grid_of(const plan::Program& program, const ExecutorOptions& options);

/// Throws InputError in words when the Program has nothing to train, or not with experts that so
/// many replicas share out.
void require_trainable(const plan::Program& program, int expert_ranks = 1);

/// The gradient group of each microbatch of the batch, over all replicas: see
/// TrainingSetup::gradient_groups. Throws InputError when the groups that are asked for do not
/// divide the batch, or a pipeline or one of its directions would own part of one.
std::vector<int> gradient_groups(const plan::Program& program, const TrainingSetup& setup,
                                 int replicas);

class Stage;

class Executor {
 public:
  /// Builds every stage's layers, each on its rank's memory account. Throws InputError when the
  /// Program is unsound, holds what the executor cannot do, or when the partition is for other
  /// layers or another placement.
  Executor(plan::Program program, const plan::Partition& partition, const TrainingSetup& setup,
           ExecutorOptions options = {});
  ~Executor();

  /// Runs one iteration on all ranks. Nothing when it was stopped: the parameters are then between
  /// two steps. Throws RankFailure, or Aborted when a rank of another process failed; after any of
  /// them the executor is spent.
  std::optional<StepResult> step(int step, StepOptions how = {});

  /// Runs a forward-only Program over the same stages: its own number of microbatches, of `data`.
  /// Throws InputError when its stages lie elsewhere; otherwise ends as `step`.
  std::optional<Evaluation> evaluate(const plan::Program& program, const Dataset& data, int step,
                                     EvaluationPass how = {});

  /// In the order of layers; of one copy of each stage, of those in this process. What shards share
  /// out is put together, where all of them are here. Where parameters are sharded (ZeRO-3) they
  /// are gathered for it, and copied: then every process of a job calls it at once.
  std::vector<at::Tensor> parameters() const;

  /// What the ranks of this process add to a checkpoint before step `next_step`, as copies. Of
  /// equal copies of a stage the first speaks for all. Not while a step runs. Where parameters are
  /// sharded, every process of a job calls it at once. Not `copied`: what lies on the CPU is that
  /// of the training, which the next step changes (`copies_of` makes it the caller's own).
  Snapshot snapshot(int next_step, bool copied = true) const;
  /// Takes parameters, the optimizers' states and the loss scale of a checkpoint; of not `weights`
  /// the last two alone. Throws InputError when it does not fit (`check_load` tells all reasons) or
  /// is damaged.
  void restore(const Checkpoint& checkpoint, bool weights = true);
  /// Calls `visit` with each stage of this process, one after the other, while its parameters are
  /// whole: what it changes of them stays once the optimizer's masters are refreshed. Where
  /// parameters are sharded, every process of a job calls it at once. Not while a step runs.
  void visit_stages(const std::function<void(Stage&)>& visit) const;
  /// The same from another executor with the same layers on the same ranks.
  void take_over(const Executor& other);
  double loss_scale() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pipewright::exec
