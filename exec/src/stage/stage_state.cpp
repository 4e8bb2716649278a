#include "stage_state.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>

#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/checkpoint/dtype.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

at::Tensor copy_of(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU, tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true,
                            at::MemoryFormat::Contiguous);
}

std::string state_name(const Stage& stage, const Optimizer::State& state) {
  return stage.name_of(state.parameter) + "/" + state.name;
}

const NamedTensor& find(const std::vector<NamedTensor>& tensors, const std::string& name,
                        const LayerState& layer) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const NamedTensor& tensor) { return tensor.name == name; });
  if (found == tensors.end())
    throw plan::InputError(
        fmt::format("layer {} ({}): '{}' is not in the checkpoint", layer.index, layer.name, name));
  return *found;
}

void take(at::Tensor target, const at::Tensor& stored, const std::string& name,
          const LayerState& layer) {
  if (target.numel() != stored.numel())
    throw plan::InputError(
        fmt::format("layer {} ({}): '{}' has {} numbers in the checkpoint, {} "
                    "in the model",
                    layer.index, layer.name, name, stored.numel(), target.numel()));
  target.copy_(stored.view(target.sizes()));
}

}  // namespace

std::vector<std::pair<std::string, at::Tensor>> tensors_of(const Layer& layer) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const auto& named : layer.named_parameters())
    tensors.emplace_back(named.key(), named.value());
  for (const auto& named : layer.named_buffers())
    tensors.emplace_back(named.key(), named.value());
  return tensors;
}

namespace {

/// The place of a layer's state, which another copy of its stage may have begun.
LayerState& state_of(std::vector<LayerState>& layers, int layer, const std::string& name) {
  const auto found = std::find_if(layers.begin(), layers.end(),
                                  [&](const LayerState& state) { return state.index == layer; });
  return found != layers.end() ? *found : layers.emplace_back(LayerState{layer, name, {}, {}});
}

/// Copies come in the order of their shards: a slice goes on where that of the copy before ends.
void append(std::vector<NamedTensor>& tensors, NamedTensor slice) {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const NamedTensor& known) {
    return known.name == slice.name && known.whole >= 0 &&
           known.begin + known.value.numel() == slice.begin;
  });
  if (found == tensors.end())
    return tensors.push_back(std::move(slice));
  found->value = at::cat({found->value, slice.value});
}

}  // namespace

void append_state(const Stage& stage, bool is_first_copy, std::vector<LayerState>& layers) {
  for (int layer = stage.spec().first; layer < stage.spec().last; ++layer) {
    const auto at = static_cast<std::size_t>(layer - stage.spec().first);
    LayerState& state = state_of(layers, layer, stage.spec_of(layer).name);
    if (is_first_copy)
      for (const auto& [name, tensor] : tensors_of(*stage.layers()[at]))
        state.parameters.push_back({name, copy_of(tensor)});
  }
  if (!is_first_copy && stage.spec().shard.count == 1)
    return;
  for (const Optimizer::State& kept : stage.optimizer().states()) {
    if (kept.name == "step" && kept.begin > 0)
      continue;
    const int layer = stage.layer_of(kept.parameter);
    append(state_of(layers, layer, stage.spec_of(layer).name).optimizer,
           {state_name(stage, kept), copy_of(kept.value), kept.whole < 0 ? 0 : kept.begin,
            kept.whole});
  }
}

void restore_state(Stage& stage, const Checkpoint& checkpoint) {
  const at::NoGradGuard no_grad;
  const bool sharded = stage.spec().shard.parameters;
  if (sharded)
    stage.make_room();
  std::vector<LayerState> stored;
  for (int layer = stage.spec().first; layer < stage.spec().last; ++layer) {
    const auto at = static_cast<std::size_t>(layer - stage.spec().first);
    stored.push_back(checkpoint.layer(layer));
    for (const auto& [name, tensor] : tensors_of(*stage.layers()[at]))
      take(tensor, find(stored[at].parameters, name, stored[at]).value, name, stored[at]);
  }
  stage.optimizer().refresh_masters();
  if (sharded)
    stage.let_go();
  for (const Optimizer::State& own : stage.optimizer().states()) {
    const auto at = static_cast<std::size_t>(stage.layer_of(own.parameter) - stage.spec().first);
    const std::string name = state_name(stage, own);
    at::Tensor value = find(stored[at].optimizer, name, stored[at]).value;
    if (own.whole >= 0)
      value = value.view(-1).narrow(0, own.begin, own.value.numel());
    take(own.value, value, name, stored[at]);
  }
}

void copy_state(const Stage& from, Stage& to) {
  const at::NoGradGuard no_grad;
  for (std::size_t layer = 0; layer < to.layers().size(); ++layer) {
    const auto source = tensors_of(*from.layers().at(layer)),
               target = tensors_of(*to.layers()[layer]);
    for (std::size_t t = 0; t < target.size(); ++t)
      if (!to.spec().shard.parameters || !target[t].second.requires_grad())
        target[t].second.copy_(source.at(t).second);
  }
  if (to.spec().shard.parameters) {
    const Tensors values = from.optimizer().slices(), own = to.optimizer().slices();
    for (std::size_t s = 0; s < own.size(); ++s)
      own[s].copy_(values.at(s));
  }
  const auto source = from.optimizer().states(), target = to.optimizer().states();
  for (std::size_t s = 0; s < target.size(); ++s)
    target[s].value.copy_(source.at(s).value);
}

}  // namespace pipewright::exec
