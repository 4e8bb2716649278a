#pragma once

// A model that runs forward alone, over a stream of batches: microbatches enter one behind the
// other and never wait for the pipeline to drain, so outputs come as fast as the slowest stage
// makes them.

#include <cstdint>
#include <functional>
#include <memory>

#include "pipewright/engine/forward_options.hpp"
#include "pipewright/engine/pipeline_module.hpp"
#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/data/loader.hpp"

namespace pipewright::engine {

struct InferenceOptions {
  int microbatches = 1;  // that a batch is cut into, along dimension 0; outputs are put together
  /// Microbatches that have entered and not come out, at most. 0: twice as many as ranks; with
  /// fewer than ranks some rank always waits.
  int under_way = 0;
  ForwardOptions where{};
};

class InferencePipeline {
 public:
  /// What becomes of the outputs of batch `index`, which lie in the host's memory.
  using Sink = std::function<void(std::int64_t index, exec::Tensors outputs)>;

  /// Builds the layers, in evaluation mode and without room for gradients; they begin with the
  /// module's weights. The loss of the module, if any, is not looked at. Stages of a rank lie one
  /// behind the other. Throws InputError where the module's axes data or tensor are longer than 1.
  explicit InferencePipeline(PipelineModule module, InferenceOptions options = {});
  ~InferencePipeline();

  /// Takes the weights of a checkpoint. Throws InputError that names what it lacks.
  void restore(const exec::Checkpoint& checkpoint);
  /// Those of a training, such as `engine.executor().snapshot(engine.next_step())`: of the layers
  /// of this process's ranks. Throws InputError where one is missing or in parts.
  void take_weights(const exec::Snapshot& training);

  /// Runs all batches of `source`, whose targets are not looked at, and gives their outputs to
  /// `sink` in order. Returns how many there were, on every rank. The first rank reads, on its own
  /// thread; the last one calls `sink`, on its own; other processes need neither. Shapes may differ
  /// from batch to batch. What a layer throws is named by rank and microbatch; after that the
  /// transport of a job is spent.
  std::int64_t run(const exec::BatchSource& source, const Sink& sink);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pipewright::engine
