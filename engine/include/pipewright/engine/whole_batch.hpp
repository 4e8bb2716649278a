#pragma once

// A batch as its user has it, whole, with how each argument is cut into microbatches.

#include <map>
#include <string>
#include <vector>

#include "pipewright/engine/microbatches.hpp"
#include "pipewright/exec/data/loader.hpp"

namespace pipewright::engine {

/// Of all pipelines together. What a process's stages do not take may be left out there: inputs
/// where no first stage is, targets where no last one is.
struct WholeBatch {
  exec::Tensors inputs{};                 // of the first layer
  exec::Tensors targets{};                // of the loss
  exec::NamedTensors keywords{};          // of layers that name them
  std::vector<ChunkSpec> input_chunks{};  // one an argument, or none: all along dimension 0
  std::vector<ChunkSpec> target_chunks{};
  std::map<std::string, ChunkSpec> keyword_chunks{};  // of those that are not cut along dimension 0
};

/// The microbatches of the batch, in order; each counts as many samples as it has. Throws
/// InputError as split_batch, and where inputs, targets and keywords differ in their samples.
std::vector<exec::Batch> microbatches_of(const WholeBatch& batch, int count);

/// Whether all microbatches have the same sizes.
bool are_even(const std::vector<exec::Batch>& microbatches);

}  // namespace pipewright::engine
