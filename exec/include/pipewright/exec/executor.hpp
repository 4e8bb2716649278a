#pragma once

// Runs a Program on real tensors: one thread a rank in one process. There is no schedule in here;
// each rank interprets its list of instructions.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipewright/exec/adamw.hpp"
#include "pipewright/exec/dataset.hpp"
#include "pipewright/exec/layer.hpp"
#include "pipewright/exec/memory_meter.hpp"
#include "pipewright/plan/partition.hpp"
#include "pipewright/plan/program.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::exec {

/// What happened when a rank ran one instruction; times count from the start of the step.
struct InstructionRecord {
  int rank = 0;
  plan::Instruction instruction;
  plan::Seconds start;
  plan::Seconds end;
  plan::Bytes held_before;
  plan::Bytes peak;  // most held while it ran
  plan::Bytes held_after;
};

/// Called on the rank's own thread after each instruction; calls of different ranks overlap.
using Observer = std::function<void(const InstructionRecord&)>;

/// What is trained, on what.
struct TrainingSetup {
  std::vector<LayerSpec> layers;
  Loss loss;
  const Dataset* data = nullptr;  // outlives the executor
  AdamW::Options optimizer;
  int base_seed = 0;
};

struct ExecutorOptions {
  Observer observer;                        // empty: nothing is recorded
  const std::atomic<bool>* stop = nullptr;  // set from anywhere: the step ends early
  bool pin_threads = true;                  // a core for each rank, when there are enough
};

/// A rank's work threw: names rank, action and cause.
class RankFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct StepResult {
  double loss = 0;         // mean over the step's microbatches
  plan::Seconds duration;  // until the last rank was done
};

/// Throws InputError in words when the Program asks for what the executor does not do: two
/// directions, updates without a flush, inference, recomputation, reductions, sharding.
void require_trainable(const plan::Program& program);

class Executor {
 public:
  /// Builds every stage's layers, each on its rank's memory account. Throws InputError when the
  /// Program is unsound, holds what the executor cannot do yet (recompute), or when the partition
  /// is for other layers or another placement.
  Executor(plan::Program program, const plan::Partition& partition, const TrainingSetup& setup,
           ExecutorOptions options = {});
  ~Executor();

  /// Runs one iteration on all ranks. Nothing when it was stopped: the parameters are then between
  /// two steps. Throws RankFailure; after either the executor is spent.
  std::optional<StepResult> step(int step);

  /// In the order of layers.
  std::vector<at::Tensor> parameters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pipewright::exec
