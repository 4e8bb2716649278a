#include "pipewright/exec/stage/stage_state.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/checkpoint/dtype.hpp"
#include "pipewright/exec/checkpoint/snapshot.hpp"
#include "pipewright/exec/training/cut_parameter.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

at::Tensor copy_of(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU, tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true,
                            at::MemoryFormat::Contiguous);
}

/// Returns which part of a tensor a stage has.
TensorPart part_in(const StageSpec& spec, const std::optional<CutParameter>& cut) {
  const PartIndex seat = cut ? seat_of(*cut, spec.place) : PartIndex();
  if (seat.count == 1)
    return {};
  return {cut->dimension, cut->blocks, cut->whole, seat.index, seat.count, seat.experts};
}

const TrainedParameter& parameter_of(const Stage& stage, const Optimizer::State& state) {
  return stage.layers().trained()[state.parameter];
}

/// Returns which part of an optimizer's state tensor a stage has. A count of steps is the same for
/// all parts.
TensorPart part_of_state(const Stage& stage, const Optimizer::State& state) {
  return state.value.dim() == 0 ? TensorPart()
                                : part_in(stage.spec(), parameter_of(stage, state).cut);
}

std::string state_name(const Stage& stage, const Optimizer::State& state) {
  return parameter_of(stage, state).name + "/" + state.name;
}

/// Returns the stored parts of a tensor, in their order, or the tensor itself if it was stored
/// whole.
std::vector<NamedTensor> find(const std::vector<NamedTensor>& tensors, const std::string& name,
                              const LayerState& layer) {
  std::vector<NamedTensor> found;
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(found),
               [&](const NamedTensor& tensor) { return tensor.name == name; });
  if (found.empty())
    throw plan::InputError(
        fmt::format("layer {} ({}): '{}' is not in the checkpoint", layer.index, layer.name, name));
  return found;
}

using Sizes = std::vector<std::int64_t>;

PartIndex seat_of(const TensorPart& part) { return {part.index, part.count, part.experts}; }

/// Returns the sizes of a part of a tensor with these sizes, without allocating it.
Sizes sizes_of(const Sizes& whole, const TensorPart& part) {
  if (part.count == 1)
    return whole;
  const at::Tensor like = at::zeros({1}).expand(whole);
  return part_of(like, cut_of(part), seat_of(part)).sizes().vec();
}

/// Returns the part `wanted`, which has these sizes, of a stored tensor, independent of the parts
/// in which it was stored.
at::Tensor stored_part(const std::vector<NamedTensor>& stored, const TensorPart& wanted,
                       Sizes sizes, const LayerState& layer) {
  sizes = whole_sizes(std::move(sizes), wanted);
  Tensors parts;
  for (const NamedTensor& each : stored) {
    const bool has_dimension = each.part.dimension < static_cast<int>(sizes.size());
    const Sizes own = has_dimension ? sizes_of(sizes, each.part) : Sizes();
    const auto numbers = c10::multiply_integers(own);
    if (each.value.numel() != numbers)
      throw plan::InputError(
          fmt::format("layer {} ({}): '{}' has {} elements in the checkpoint, {} in the model",
                      layer.index, layer.name, each.name, each.value.numel(), numbers));
    parts.push_back(each.value.view(own));
  }
  const at::Tensor whole = joined(parts, stored.front().part);
  return wanted.count > 1 ? part_of(whole, cut_of(wanted), seat_of(wanted)) : whole;
}

}  // namespace

TensorPart part_held(const Stage& stage, const Layer& layer, const std::string& name) {
  return part_in(stage.spec(), find_cut(layer, name));
}

std::vector<std::int64_t> whole_sizes(std::vector<std::int64_t> sizes, const TensorPart& part) {
  if (part.count > 1) {
    sizes[static_cast<std::size_t>(part.dimension)] = part.length;
    sizes[0] *= part.experts;
  }
  return sizes;
}

std::vector<at::Tensor> whole_parameters(const std::vector<const Stage*>& shards) {
  const Stage& first = *shards.front();
  std::vector<at::Tensor> parameters;
  for (int layer = first.spec().first; layer < first.spec().last; ++layer)
    for (const auto& named : first.layers().at(layer).named_parameters()) {
      const auto cut = find_cut(first.layers().at(layer), named.key());
      parameters.push_back(named.value());
      const PartIndex seat = cut ? seat_of(*cut, first.spec().place) : PartIndex();
      if (seat.count == 1 || static_cast<int>(shards.size()) < seat.count)
        continue;
      const at::NoGradGuard no_grad;
      Tensors parts;
      // A parameter with fewer parts has them in the first shards.
      for (int part = 0; part < seat.count; ++part)
        parts.push_back(
            *shards[static_cast<std::size_t>(part)]->layers().at(layer).named_parameters().find(
                named.key()));
      parameters.back() = joined(parts, *cut, seat.experts);
    }
  return parameters;
}

std::vector<std::pair<std::string, at::Tensor>> tensors_of(const Layer& layer) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const auto& named : layer.named_parameters())
    tensors.emplace_back(named.key(), named.value());
  for (const auto& named : layer.named_buffers())
    tensors.emplace_back(named.key(), named.value());
  return tensors;
}

void append_state(const Stage& stage, const StateOwner& speaks, std::vector<LayerState>& layers,
                  bool copied) {
  const auto taken = [](const at::Tensor& tensor, bool as_copy) {
    return as_copy || !tensor.is_cpu() ? copy_of(tensor) : tensor.detach();
  };
  const auto first = static_cast<std::ptrdiff_t>(layers.size());
  const auto is_first_copy = [&](const TensorPart& part) {
    return part.experts > 1 ? speaks.of_experts : speaks.of_stage;
  };
  const auto speaks_for = [&](const TensorPart& part) {
    return part.count > 1 || stage.spec().place.index == 0;
  };
  const Optimizer& optimizer = stage.optimizer();
  for (int layer = stage.spec().first; layer < stage.spec().last; ++layer) {
    const Layer& own = stage.layers().at(layer);
    LayerState& state =
        layers.emplace_back(LayerState{layer, stage.layers().spec_of(layer).name, {}, {}});
    for (const auto& [name, tensor] : tensors_of(own)) {
      const TensorPart part = part_held(stage, own, name);
      if (is_first_copy(part) && speaks_for(part))
        state.parameters.push_back({.name = name,
                                    .value = taken(tensor, copied || stage.spec().shard.parameters),
                                    .part = part});
    }
  }
  for (const Optimizer::State& kept : optimizer.states()) {
    const bool is_first_slice =
        kept.begin == 0 && (!optimizer.copied().is_of_experts(kept.parameter) ||
                            stage.spec().place.experts.index == 0);
    if (kept.value.dim() == 0 && !is_first_slice)
      continue;
    const bool all_have_alike = !optimizer.is_divided(kept.parameter);
    const TensorPart part = part_of_state(stage, kept);
    if (!speaks_for(part) || (all_have_alike && !is_first_copy(part)))
      continue;
    const int layer = parameter_of(stage, kept).layer;
    layers[static_cast<std::size_t>(first + layer - stage.spec().first)].optimizer.push_back(
        {state_name(stage, kept), taken(kept.value, copied), kept.whole < 0 ? 0 : kept.begin,
         kept.whole, part});
  }
}

namespace {

/// Returns the stored state of a parameter's slice. A state without dimensions is the same for all
/// parts.
at::Tensor stored_state(const Stage& stage, const Optimizer::State& own,
                        const std::vector<NamedTensor>& stored, const LayerState& layer) {
  const TensorPart part = part_of_state(stage, own);
  if (own.value.dim() == 0)
    return stored_part(stored, part, {}, layer);
  const at::Tensor& parameter = stage.optimizer().parameters()[own.parameter];
  const at::Tensor all = stored_part(stored, part, parameter.sizes().vec(), layer);
  return own.whole < 0 ? all : all.reshape(-1).narrow(0, own.begin, own.value.numel());
}

void restore_parameters(Stage& stage, int layer, const Checkpoint& checkpoint) {
  const LayerState stored = checkpoint.parameters_of(layer);
  const Layer& own = stage.layers().at(layer);
  for (const auto& [name, tensor] : tensors_of(own))
    tensor.copy_(stored_part(find(stored.parameters, name, stored), part_held(stage, own, name),
                             tensor.sizes().vec(), stored));
}

}  // namespace

void restore_weights(Stage& stage, const Checkpoint& checkpoint) {
  const at::NoGradGuard no_grad;
  stage.allocate_parameters();
  for (int layer = stage.spec().first; layer < stage.spec().last; ++layer)
    restore_parameters(stage, layer, checkpoint);
  stage.optimizer().refresh_masters();
  stage.free_parameters();
}

void restore_optimizer(Stage& stage, const Checkpoint& checkpoint) {
  const at::NoGradGuard no_grad;
  LayerState stored{.index = -1, .name = {}, .parameters = {}, .optimizer = {}};
  for (const Optimizer::State& own : stage.optimizer().states()) {
    if (const int layer = parameter_of(stage, own).layer; layer != stored.index) {
      stored = {};  // free it before the next one is read
      stored = checkpoint.optimizer_of(layer);
    }
    own.value.copy_(
        stored_state(stage, own, find(stored.optimizer, state_name(stage, own), stored), stored));
  }
  stage.optimizer().states_were_set();
}

void copy_state(const Stage& from, Stage& to) {
  const at::NoGradGuard no_grad;
  for (int layer = to.spec().first; layer < to.spec().last; ++layer) {
    const auto source = tensors_of(from.layers().at(layer)),
               target = tensors_of(to.layers().at(layer));
    for (std::size_t t = 0; t < target.size(); ++t)
      if (!to.spec().shard.parameters || !target[t].second.requires_grad())
        target[t].second.copy_(source.at(t).second);
  }
  if (to.spec().shard.parameters) {
    const Tensors values = from.optimizer().own_slices(), own = to.optimizer().own_slices();
    for (std::size_t s = 0; s < own.size(); ++s)
      own[s].copy_(values.at(s));
  }
  const auto source = from.optimizer().states(), target = to.optimizer().states();
  for (std::size_t s = 0; s < target.size(); ++s)
    target[s].value.copy_(source.at(s).value);
  to.optimizer().states_were_set();
}

}  // namespace pipewright::exec
