#pragma once

// Runs a Program on real tensors, with one thread per rank, for all ranks of this process. It knows
// no schedules: each rank interprets its list of instructions.

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

/// The times and memory of one instruction on one rank. Times count from the start of the step.
struct InstructionRecord {
  int rank = 0;  // of the job
  plan::Instruction instruction;
  plan::Seconds start;
  plan::Seconds end;
  plan::Bytes held_before;
  plan::Bytes peak;  // peak while it ran; for an interleaved fused pair, since the pair began
  plan::Bytes held_after;
  /// The part of its time spent in tensor-parallel and expert-parallel collectives, including the
  /// wait for other ranks. For an interleaved fused pair, time that overlapped the other action's
  /// compute does not count.
  plan::Seconds shards{};
  plan::Seconds late{};  // part of `shards` spent waiting for late ranks (late_members.hpp)
};

/// Called on the rank's own thread after each instruction. For an interleaved fused pair, both
/// calls come after the second action, and their times overlap. For a rank on a GPU, or one in a
/// tensor-parallel or expert-parallel group, all calls come at the end of the step. Calls of
/// different ranks may overlap.
using Observer = std::function<void(const InstructionRecord&)>;

struct ExecutorOptions {
  Observer observer{};  // empty: nothing is recorded
  /// Called on the rank's own thread with the instruction that it starts; for a receive, when the
  /// rank begins to wait for it. For an interleaved fused pair, called with the action that is
  /// `fused_with_next` and then with the other one.
  std::function<void(const plan::Instruction&)> starting{};
  /// Receives the allocations of each rank of this process that computes on the CPU, starting with
  /// its first parameter.
  std::function<void(int rank, const AllocationEvent&)> allocations{};
  /// Called on the rank's own thread in place of a fused pair. Exceptions that it throws are
  /// reported under the pair's name. It must have run both actions when it returns; otherwise the
  /// rank fails. Empty: both run as in `FusedPair::run_both`.
  std::function<void(const FusedPair&)> run_pair{};
  /// Called on the rank's own thread in place of each action (F, B, I, W and R), including those of
  /// a pair. Exceptions that it throws are reported under the action's name. It must have run the
  /// action when it returns; otherwise the rank fails.
  std::function<void(const ReadyAction&)> run_action{};
  const std::atomic<bool>* stop = nullptr;  // may be set by any thread; ends the step early
  bool pin_threads = true;  // one core for each rank on the CPU, if there are enough cores
  /// Time without a new instruction on any rank, during a pass, after which `when_stalled` is
  /// called once on another thread. Applies only if all ranks are threads of this process. Only the
  /// end of the process ends a thread that hangs. Must exceed the longest action, on a GPU the
  /// longest step. 0: never.
  std::chrono::milliseconds stall{0};
  std::function<void(const std::string& why)> when_stalled{};
  /// Captures the work of each action (F, R, B, I and W) on a microbatch as CUDA graphs in the
  /// second step, and replays them afterwards. Each buffer of the stage has its own set of graphs.
  /// Each replay is one launch and gives the same bits. Sizes must not change. A stage with layers
  /// that use random numbers or vary between calls runs without graphs. On the CPU everything is
  /// executed as usual, but from and to fixed memory.
  bool cuda_graphs = false;
  /// Maximum number of microbatches that a background thread reads before the rank reaches their
  /// LOADs. 0: each is read when its LOAD is reached. If the next step follows
  /// (StepOptions::continues), its reads begin during this step.
  int read_ahead = 0;
  bool dynamic_shapes = false;  // shapes at stage boundaries may differ between microbatches
  int replicas = 1;             // data-parallel replicas, whose gradients the Program sums
  int shards = 1;               // tensor-parallel ranks that partition each stage
  /// Number of consecutive replicas that form an expert-parallel group: they partition the experts
  /// and exchange tokens by all-to-all. With more than one, the Program must have a flush.
  int expert_ranks = 1;
  /// The order of the axes that number the ranks of the job: see JobGrid.
  std::vector<std::string> axes{"pipe", "data", "tensor"};
  /// The device of each rank of the job. Empty: all ranks compute on the CPU.
  std::vector<RankDevice> devices{};
  /// Set if the other ranks are in other processes: the transport that reaches them, and the rank
  /// of the job that this process has. Empty: all ranks are in this process.
  std::shared_ptr<Transport> transport{};
  std::optional<int> only_rank{};
};

/// A failure of a rank's work. The message has the rank, the action and the cause.
class RankFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct StepOptions {
  bool continues = false;  // step `step` + 1 follows, so its data may be read ahead
  bool outputs = false;    // return the last stage's outputs
};

struct StepResult {
  double loss = 0;           // weighted mean over the step's microbatches, of all replicas
  plan::Seconds begin;       // on the machine's steady clock
  plan::Seconds duration;    // until the last rank of this process has finished
  double gradient_norm = 0;  // before clipping; 0 unless gradients are clipped or scaled
  bool skipped = false;      // true if a gradient was not finite, so that no parameter changed
  /// The loss of each microbatch of the batch, as the loss function returned it.
  std::vector<double> losses{};
  /// The last stage's outputs, as in Evaluation.
  std::vector<Tensors> outputs{};
};

struct EvaluationPass {
  bool outputs = false;  // return the last stage's outputs
  bool loss = true;      // false: computes no loss and reads no targets
};

struct Evaluation {
  /// The losses over the batch and by microbatch, as in StepResult. They are 0 and empty if no loss
  /// was computed, or if the Program does not share its losses and the last stage is in another
  /// process.
  double loss = 0;
  std::vector<double> losses{};
  /// The outputs of each microbatch of the batch, if they were requested and the last stage is in
  /// this process.
  std::vector<Tensors> outputs{};
};

/// Returns the coordinates of the job's ranks when a Program runs with these options.
JobGrid grid_of(const plan::Program& program, const ExecutorOptions& options);

/// Throws InputError if the Program has nothing to train, or cannot be trained with expert-parallel
/// groups of `expert_ranks` replicas.
void require_trainable(const plan::Program& program, int expert_ranks = 1);

/// Returns the gradient group of each microbatch of the batch, over all replicas: see
/// TrainingSetup::gradient_groups. Throws InputError if the requested groups do not divide the
/// batch, or if a group would span several pipelines or both directions of one.
std::vector<int> gradient_groups(const plan::Program& program, const TrainingSetup& setup,
                                 int replicas);

class Stage;

class Executor {
 public:
  /// Builds every stage's layers, charged to the memory account of their rank. Throws InputError if
  /// the Program is unsound or contains what the executor cannot do, or if the partition is for
  /// other layers or another placement.
  Executor(plan::Program program, const plan::Partition& partition, const TrainingSetup& setup,
           ExecutorOptions options = {});
  ~Executor();

  /// Runs one iteration on all ranks. Returns nothing if it was stopped; the parameters then have
  /// consistent values, as between two steps. Throws RankFailure, or Aborted if a rank of another
  /// process failed. After any of these the executor can no longer be used.
  std::optional<StepResult> step(int step, StepOptions how = {});

  /// Runs a forward-only Program, with its own number of microbatches, over the same stages on
  /// `data`. Throws InputError if the Program has another placement; otherwise fails as `step`
  /// does.
  std::optional<Evaluation> evaluate(const plan::Program& program, const Dataset& data, int step,
                                     EvaluationPass how = {});

  /// Returns the parameters in the order of layers, from one replica of each stage in this process.
  /// Tensor-parallel and expert-parallel parts are joined if all of them are in this process.
  /// Sharded parameters (ZeRO-3) are gathered and copied, so every process of a job must call it at
  /// the same time.
  std::vector<at::Tensor> parameters() const;

  /// Returns copies of the state that the ranks of this process add to a checkpoint before step
  /// `next_step`. The first of equal replicas supplies the state of all. Must not be called while a
  /// step runs. If parameters are sharded, every process of a job must call it at the same time. If
  /// not `copied`, tensors on the CPU are those of the training itself, which the next step changes
  /// (`copies_of` copies them).
  Snapshot snapshot(int next_step, bool copied = true) const;
  /// Loads parameters, optimizer states and loss scale from a checkpoint; without `weights` only
  /// the last two. Throws InputError if the checkpoint is damaged or does not fit (`check_load`
  /// lists all reasons).
  void restore(const Checkpoint& checkpoint, bool weights = true);
  /// Calls `visit` with each stage of this process, one after the other, while its parameters are
  /// gathered. Changes to the parameters persist once the optimizer's masters are refreshed. If
  /// parameters are sharded, every process of a job must call it at the same time. Must not be
  /// called while a step runs.
  void visit_stages(const std::function<void(Stage&)>& visit) const;
  /// Copies parameters, optimizer states and loss scale from another executor with the same layers
  /// on the same ranks.
  void take_over(const Executor& other);
  double loss_scale() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pipewright::exec
