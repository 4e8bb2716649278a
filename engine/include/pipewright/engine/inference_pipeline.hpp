#pragma once

// Forward-only execution over a stream of batches. Microbatches enter back to back and the pipeline
// never drains between them, so throughput is that of the slowest stage.

#include <cstdint>
#include <functional>
#include <memory>

#include "pipewright/engine/forward_options.hpp"
#include "pipewright/engine/pipeline_module.hpp"
#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/data/loader.hpp"

namespace pipewright::engine {

struct InferenceOptions {
  int microbatches = 1;  // microbatches per batch, along dimension 0; outputs are merged
  /// Maximum number of microbatches in flight. 0: twice the number of ranks. With fewer than the
  /// number of ranks, some rank always waits.
  int under_way = 0;
  ForwardOptions where{};
};

class InferencePipeline {
 public:
  /// A function that receives the outputs of batch `index`, in host memory.
  using Sink = std::function<void(std::int64_t index, exec::Tensors outputs)>;

  /// Builds the layers in evaluation mode, without memory for gradients, and with the module's
  /// initial weights. The module's loss, if any, is ignored. A rank's stages must be consecutive.
  /// Throws InputError if the module's axes data or tensor are longer than 1.
  explicit InferencePipeline(PipelineModule module, InferenceOptions options = {});
  ~InferencePipeline();

  /// Loads the weights of a checkpoint. Throws InputError that names the missing ones.
  void restore(const exec::Checkpoint& checkpoint);
  /// Copies the weights of a running training, such as
  /// `engine.executor().snapshot(engine.next_step())`, into the layers of this process's ranks.
  /// Throws InputError if one is missing or stored in parts.
  void take_weights(const exec::Snapshot& training);

  /// Runs all batches of `source`, whose targets are ignored, and passes their outputs to `sink` in
  /// order. Returns the number of batches, on every rank. The first rank reads `source` on its own
  /// thread and the last one calls `sink` on its own; other processes need neither. Shapes may
  /// differ from batch to batch. An exception from a layer is rethrown with its rank and
  /// microbatch. After that, a job's transport cannot be used again.
  std::int64_t run(const exec::BatchSource& source, const Sink& sink);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pipewright::engine
