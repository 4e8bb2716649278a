#pragma once

// The number of transformer layers per stage. The embedding and the head take time too, so the
// first and last stage may get fewer layers. If layers do not divide evenly, some stages get one
// more.

#include <vector>

#include "pipewright/plan/partition/cut.hpp"

namespace pipewright::models {

/// Returns the layers per stage that minimize the longest stage, if a layer takes 1 and the
/// embedding and the head take `embedding` and `head`. Every stage has at least one layer. If
/// several stages could get one more, a later one does, because it holds fewer microbatches.
/// Requires `layers` >= `stages` >= 1.
std::vector<int> balanced_stage_layers(int layers, int stages, double embedding, double head);

/// Returns the boundaries of the cut's stages, counting the embedding as the first layer and the
/// head as the last.
std::vector<int> boundaries_of(const plan::Cut& cut, int layers);

}  // namespace pipewright::models
