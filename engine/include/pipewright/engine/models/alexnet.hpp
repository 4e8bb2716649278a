#pragma once

// AlexNet as LibTorch computes it.

#include <vector>

#include "pipewright/exec/training/layer_spec.hpp"
#include "pipewright/plan/model/alexnet_model.hpp"

namespace pipewright::engine {

/// The layers that `plan::alexnet_model` describes. Input: images [batch, 3, size, size]; output:
/// logits [batch, classes]. Dropout draws from `seed`, layer, step and microbatch alone, so that it
/// does not depend on the order in which microbatches run.
std::vector<exec::LayerSpec> alexnet_layers(const plan::AlexNetShape& shape, int seed);

}  // namespace pipewright::engine
