#pragma once

// Where the tensors of a layer lie: each whole in one file, or in slices in several.

#include <vector>

#include "checkpoint/manifest.hpp"

namespace pipewright::exec {

struct Piece {
  const StoredFile* file;
  const StoredTensor* tensor;
};

/// The pieces of one tensor, in the order of their numbers.
struct PiecedTensor {
  TensorShape shape;  // of the whole: flat where it lies in slices
  std::vector<Piece> pieces;
};

/// Throws InputError in words when a tensor is there twice, or not all of it.
std::vector<PiecedTensor> pieces_of(const StoredLayer& layer, Holds holds);

/// Throws InputError unless every layer is there once, from the first on, and every tensor whole.
void require_whole(const Manifest& manifest);

}  // namespace pipewright::exec
