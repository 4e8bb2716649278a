#pragma once

// A whole batch, with a rule for each argument that says how to split it into microbatches.

#include <map>
#include <string>
#include <vector>

#include "pipewright/engine/microbatches.hpp"
#include "pipewright/exec/data/loader.hpp"

namespace pipewright::engine {

/// The batch of one step, for all data-parallel replicas together. A process may omit what its
/// stages do not need: the inputs if it does not have the first stage, the targets if it does not
/// have the last one.
struct WholeBatch {
  exec::Tensors inputs{};                 // of the first layer
  exec::Tensors targets{};                // for the loss
  exec::NamedTensors keywords{};          // for layers that name them
  std::vector<ChunkSpec> input_chunks{};  // one per input; empty: all along dimension 0
  std::vector<ChunkSpec> target_chunks{};
  std::map<std::string, ChunkSpec> keyword_chunks{};  // those without one: along dimension 0
};

/// Splits the batch into `count` microbatches, each weighted by its number of samples. Throws
/// InputError as split_batch does, if inputs, targets and keywords differ in their number of
/// samples, or if `keyword_chunks` names a missing keyword.
std::vector<exec::Batch> microbatches_of(const WholeBatch& batch, int count);

/// Returns true if all microbatches have the same size.
bool are_even(const std::vector<exec::Batch>& microbatches);

}  // namespace pipewright::engine
