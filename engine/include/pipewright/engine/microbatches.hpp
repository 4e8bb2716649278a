#pragma once

// A batch is cut into microbatches argument by argument, and their outputs are put together again.

#include <cstdint>
#include <functional>
#include <vector>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::engine {

/// How one argument of a batch reaches the microbatches: cut along a dimension, or whole to each.
struct ChunkSpec {
  int dimension = 0;  // negative: counted from the last
  bool replicated = false;
};
inline constexpr ChunkSpec replicate{.dimension = 0, .replicated = true};

/// Samples of microbatch `chunk` of `chunks`: where they do not divide, the first ones have one
/// more than the last, as torch's tensor_split has it.
constexpr std::int64_t samples_in(std::int64_t samples, int chunks, int chunk) {
  return samples / chunks + (chunk < samples % chunks ? 1 : 0);
}

/// The arguments of each of `chunks` microbatches: views of the batch, no copies. An undefined
/// tensor stays undefined. One spec an argument, or none: then all are cut along dimension 0.
/// Throws InputError when the cut arguments are not equally long, when there is none, or when they
/// have fewer samples than there are microbatches.
std::vector<exec::Tensors> split_batch(const exec::Tensors& batch, int chunks,
                                       const std::vector<ChunkSpec>& specs = {});

/// Makes one output of the batch from those of its microbatches, which come in order.
using Merge = std::function<at::Tensor(const exec::Tensors& parts)>;

/// Puts them one behind the other.
Merge concatenate(int dimension = 0);
/// Adds them up, in the order of the microbatches.
Merge sum();
/// The sum over the number of microbatches.
Merge mean();

/// The outputs of the batch. One merge an output, or none: then all are concatenated along
/// dimension 0. Throws InputError when microbatches have different numbers of outputs, or parts do
/// not go together.
exec::Tensors merge_outputs(const std::vector<exec::Tensors>& microbatches,
                            const std::vector<Merge>& merges = {});

}  // namespace pipewright::engine
