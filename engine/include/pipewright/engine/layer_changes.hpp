#pragma once

// Wrappers that add behavior to layers: logging when they are built, recomputation in the backward,
// and another initialization of the weights.

#include <functional>
#include <string>
#include <vector>

#include "pipewright/exec/training/layer_spec.hpp"

namespace pipewright::engine {

/// Returns `layer` with a call to `log` right before it is built. `log` receives the layer's name
/// and class, such as "a (torch::nn::LinearImpl)". Calls from different ranks may overlap.
exec::LayerSpec logged(exec::LayerSpec layer, std::function<void(const std::string& what)> log);

/// A layer's forward, for a function that recomputes it. The same inputs give the same bits.
struct CheckpointedWork {
  std::function<exec::Tensors(const exec::Tensors& inputs)> run;
  exec::Tensors parameters;  // trainable; the function must compute their gradients too
};

/// A function that runs the work now, and again when its gradients are needed.
/// `recompute_in_backward` is the default.
using CheckpointFunction =
    std::function<exec::Tensors(const CheckpointedWork&, const exec::Tensors& inputs)>;

/// Returns `layer` with activation recomputation: it keeps only its inputs and runs again in its
/// backward, and in a split backward it runs again in both halves. Under a schedule whose own
/// actions recompute, it runs one more time. Empty `how`: `recompute_in_backward`. Throws
/// InputError for a random layer.
exec::LayerSpec checkpointed(exec::LayerSpec layer, CheckpointFunction how = {});

/// Returns the layers with the initial weights of a model that is built sequentially: LibTorch's
/// generator is seeded once with the base seed, and each layer continues where the previous one
/// stopped. When a process first builds a layer, it builds and discards all layers before it.
std::vector<exec::LayerSpec> seeded_in_a_row(std::vector<exec::LayerSpec> layers);

}  // namespace pipewright::engine
