#pragma once

// AlexNet, built from LibTorch operators.

#include <vector>

#include "pipewright/exec/training/layer_spec.hpp"
#include "pipewright/plan/model/alexnet_model.hpp"

namespace pipewright::engine {

/// Returns the layers that `plan::alexnet_model` describes. Input: images [batch, 3, size, size];
/// output: logits [batch, classes]. Dropout masks depend only on `seed`, layer, step and
/// microbatch, and so not on the order in which microbatches run.
std::vector<exec::LayerSpec> alexnet_layers(const plan::AlexNetShape& shape, int seed);

}  // namespace pipewright::engine
