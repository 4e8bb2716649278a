#pragma once

// Where the tensors of a layer lie: each whole in one file, or in slices in several; and of what
// shards share out each part so.

#include <vector>

#include "checkpoint/manifest.hpp"

namespace pipewright::exec {

struct Piece {
  const StoredFile* file;
  const StoredTensor* tensor;
};

/// The pieces of one tensor, or of one part of it, in the order of their numbers.
struct PiecedTensor {
  TensorShape shape;  // of the whole, or of all of the part: flat where it lies in slices
  TensorPart part;
  std::vector<Piece> pieces;
};

/// The parts of a tensor stand behind each other, in their order. Throws InputError in words when a
/// tensor is there twice, or not all of it.
std::vector<PiecedTensor> pieces_of(const StoredLayer& layer, Holds holds);

/// The shapes of whole tensors, of which none lies in slices.
std::vector<TensorShape> whole_shapes(const std::vector<PiecedTensor>& tensors);

/// Throws InputError unless every layer is there once, from the first on, and every tensor whole.
void require_whole(const Manifest& manifest);

}  // namespace pipewright::exec
