#pragma once

// How many of a transformer's layers each stage gets. The embedding and the head take time too, so
// the stages at the ends may get fewer; where nothing divides, some get one more.

#include <vector>

#include "pipewright/plan/partition/cut.hpp"

namespace pipewright::models {

/// The longest stage is as short as it can be, where a layer takes 1 and the embedding and the head
/// take `embedding` and `head` of that. Every stage has at least one layer; of those that could
/// have one more, it is a late one, which holds fewer microbatches. `layers` >= `stages` >= 1.
std::vector<int> balanced_stage_layers(int layers, int stages, double embedding, double head);

/// The borders of the cut's stages, where the embedding is a layer in front of all others and the
/// head one behind them.
std::vector<int> boundaries_of(const plan::Cut& cut, int layers);

}  // namespace pipewright::models
