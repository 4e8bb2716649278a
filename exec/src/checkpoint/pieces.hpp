#pragma once

// The places of a layer's tensors in files. A tensor, or each tensor-parallel part of it, lies
// whole in one file or in slices in several files.

#include <vector>

#include "checkpoint/manifest.hpp"

namespace pipewright::exec {

struct Piece {
  const StoredFile* file;
  const StoredTensor* tensor;
};

/// The pieces of one tensor, or of one tensor-parallel part, in the order of their elements.
struct PiecedTensor {
  TensorShape shape;  // of the whole tensor or part; one-dimensional if it lies in slices
  TensorPart part;
  std::vector<Piece> pieces;
};

/// Returns the pieces of all tensors of a layer. The parts of a tensor follow each other in their
/// order. Throws InputError that names the tensor when one occurs twice or is incomplete.
std::vector<PiecedTensor> pieces_of(const StoredLayer& layer, Holds holds);

/// Returns the shapes of whole tensors, none of which may lie in slices.
std::vector<TensorShape> whole_shapes(const std::vector<PiecedTensor>& tensors);

/// Throws InputError unless every layer occurs once, from layer 0 on, and every tensor is complete.
void require_whole(const Manifest& manifest);

}  // namespace pipewright::exec
