#pragma once

// A batch as the user has it, with a rule for each argument how to split it into microbatches.

#include <map>
#include <string>
#include <vector>

#include "pipewright/engine/microbatches.hpp"
#include "pipewright/exec/data/loader.hpp"

namespace pipewright::engine {

/// The batch of all pipelines together. Arguments that no stage of a process needs may be omitted
/// there: inputs without a first stage, targets without a last one.
struct WholeBatch {
  exec::Tensors inputs{};                 // to the first layer
  exec::Tensors targets{};                // for the loss
  exec::NamedTensors keywords{};          // for layers that name them
  std::vector<ChunkSpec> input_chunks{};  // one per argument; empty: all along dimension 0
  std::vector<ChunkSpec> target_chunks{};
  std::map<std::string, ChunkSpec> keyword_chunks{};  // for keywords not split along dimension 0
};

/// Returns the microbatches of the batch, in order, each weighted by its number of samples. Throws
/// InputError as split_batch does, and if inputs, targets and keywords differ in their number of
/// samples.
std::vector<exec::Batch> microbatches_of(const WholeBatch& batch, int count);

/// Returns true if all microbatches have the same size.
bool are_even(const std::vector<exec::Batch>& microbatches);

}  // namespace pipewright::engine
