#pragma once

// Layers that do something more than they did: say that they are built, run again in the backward,
// draw their first weights in another way.

#include <functional>
#include <string>
#include <vector>

#include "pipewright/exec/training/layer_spec.hpp"

namespace pipewright::engine {

/// `layer`, whose name and class are told right before it is built: "a (torch::nn::LinearImpl)".
/// Calls of different ranks overlap.
exec::LayerSpec logged(exec::LayerSpec layer, std::function<void(const std::string& what)> log);

/// A layer's forward, for who runs it again. The same inputs give the same bits.
struct CheckpointedWork {
  std::function<exec::Tensors(const exec::Tensors& inputs)> run;
  exec::Tensors parameters;  // that it trains, whose gradients the function must give, too
};

/// Runs the work once now, and again when its gradients are asked for: what
/// `run_again_in_backward` does, or something of one's own.
using CheckpointFunction =
    std::function<exec::Tensors(const CheckpointedWork&, const exec::Tensors& inputs)>;

/// `layer`, which keeps its inputs alone and runs again in its backward; in both halves of one in
/// two. Under a schedule whose own actions recompute, it runs once more. Empty `how`:
/// `run_again_in_backward`. Throws InputError for a random layer.
exec::LayerSpec checkpointed(exec::LayerSpec layer, CheckpointFunction how = {});

/// The layers as a model that is built in a row is: with LibTorch's generator seeded by the base
/// seed once, each draws its first weights where the one before has stopped. For a layer those in
/// front of it are built, and let go of, the first time that a process asks.
std::vector<exec::LayerSpec> seeded_in_a_row(std::vector<exec::LayerSpec> layers);

}  // namespace pipewright::engine
