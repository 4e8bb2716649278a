#pragma once

// Splitting of a batch into microbatches, argument by argument, and merging of their outputs.

#include <cstdint>
#include <functional>
#include <vector>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::engine {

/// How one argument of a batch reaches the microbatches: split along a dimension, or replicated.
struct ChunkSpec {
  int dimension = 0;  // negative: counted from the last dimension
  bool replicated = false;
};
inline constexpr ChunkSpec replicate{.dimension = 0, .replicated = true};

/// Returns the number of samples in microbatch `chunk` of `chunks`. If they do not divide evenly,
/// the first ones have one sample more than the last, as in torch's tensor_split.
constexpr std::int64_t samples_in(std::int64_t samples, int chunks, int chunk) {
  return samples / chunks + (chunk < samples % chunks ? 1 : 0);
}

/// Returns the arguments of each of `chunks` microbatches, as views of the batch. An undefined
/// tensor stays undefined. Give one spec per argument, or none to split all along dimension 0.
/// Throws InputError if the split arguments differ in length, if no argument is split, or if there
/// are fewer samples than microbatches.
std::vector<exec::Tensors> split_batch(const exec::Tensors& batch, int chunks,
                                       const std::vector<ChunkSpec>& specs = {});

/// A function that combines one output of the batch from those of its microbatches, in order.
using Merge = std::function<at::Tensor(const exec::Tensors& parts)>;

/// Concatenates the parts.
Merge concatenate(int dimension = 0);
/// Adds the parts up, in the order of the microbatches.
Merge sum();
/// Returns the sum divided by the number of microbatches.
Merge mean();

/// Returns the outputs of the batch. Give one merge per output, or none to concatenate all along
/// dimension 0. Throws InputError if microbatches have different numbers of outputs, or if parts
/// cannot be merged.
exec::Tensors merge_outputs(const std::vector<exec::Tensors>& microbatches,
                            const std::vector<Merge>& merges = {});

}  // namespace pipewright::engine
