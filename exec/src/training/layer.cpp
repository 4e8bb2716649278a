#include "pipewright/exec/training/layer.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "pipewright/exec/hash.hpp"
#include "pipewright/exec/training/cut_parameter.hpp"
#include "pipewright/exec/training/training_setup.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

/// Guards LibTorch's generator, from which initializers and random layers draw, because the whole
/// process shares it.
std::mutex& generator_mutex() {
  static std::mutex mutex;
  return mutex;
}

const LayerSpec& spec_of(const std::vector<LayerSpec>& specs, int index) {
  return specs.at(static_cast<std::size_t>(index));
}

std::shared_ptr<Layer> build_seeded(const std::vector<LayerSpec>& specs, int index, int base_seed) {
  const LayerSpec& spec = spec_of(specs, index);
  if (spec.seed)
    spec.seed(base_seed, index);
  else
    at::manual_seed(static_cast<std::uint64_t>(base_seed) * 1'000'003 +
                    static_cast<std::uint64_t>(index));
  return spec.build();
}

Tensors tied_parameters(const LayerSpec& spec, const Layer& layer) {
  const auto parameters = layer.named_parameters();
  Tensors tied;
  for (const std::string& weight : spec.tied_weights) {
    const at::Tensor* const found = parameters.find(weight);
    if (found == nullptr)
      throw plan::InputError(fmt::format("layer {}: tied by key '{}', but it has no parameter '{}'",
                                         spec.name, spec.tied_key, weight));
    tied.push_back(*found);
  }
  return tied;
}

/// Throws InputError if two layers cannot share these weights.
void check_tied(const LayerSpec& owner, const Tensors& shared, const LayerSpec& spec,
                const Tensors& weights) {
  if (shared.size() != weights.size())
    throw plan::InputError(
        fmt::format("layers {} and {} are tied by key '{}', but one shares {} weights, the other "
                    "{}",
                    owner.name, spec.name, spec.tied_key, shared.size(), weights.size()));
  for (std::size_t w = 0; w < weights.size(); ++w) {
    if (shared[w].sizes() != weights[w].sizes())
      throw plan::InputError(
          fmt::format("layers {} and {} are tied by key '{}', but their weights '{}' and '{}' have "
                      "{} and {} elements",
                      owner.name, spec.name, spec.tied_key, owner.tied_weights[w],
                      spec.tied_weights[w], shared[w].numel(), weights[w].numel()));
    if (shared[w].requires_grad() != weights[w].requires_grad())
      throw plan::InputError(fmt::format(
          "layers {} and {} are tied by key '{}', but of their weights '{}' and '{}' one is frozen "
          "and one is not",
          owner.name, spec.name, spec.tied_key, owner.tied_weights[w], spec.tied_weights[w]));
  }
}

}  // namespace

CallNumber CallNumber::hidden_from(const std::string& layer) {
  CallNumber hidden = 0;
  hidden.hidden_from_ = &layer;
  return hidden;
}

int CallNumber::refuse() const {
  throw plan::InputError(fmt::format(
      "layer {} uses its step or microbatch, but would be captured once and replayed for others, "
      "because its LayerSpec does not set `varies`. Set it, or leave training.cuda_graphs out",
      *hidden_from_));
}

at::Tensor CallContext::find_keyword(const std::string& name) const {
  if (keywords == nullptr)
    return {};
  const auto found = keywords->find(name);
  return found == keywords->end() ? at::Tensor() : found->second;
}

const at::Tensor& CallContext::keyword(const std::string& name) const {
  if (keywords == nullptr || keywords->count(name) == 0)
    throw plan::InputError(
        fmt::format("the batch has no keyword argument '{}'. Add it to the batch's `keywords`, and "
                    "name it in the `keywords` of the layer that takes it",
                    name));
  return keywords->at(name);
}

std::optional<std::size_t> tied_place(const LayerSpec& layer, const std::string& parameter) {
  const auto& weights = layer.tied_weights;
  const auto found = std::find(weights.begin(), weights.end(), parameter);
  if (layer.tied_key.empty() || found == weights.end())
    return {};
  return static_cast<std::size_t>(found - weights.begin());
}

int tied_owner(const std::vector<LayerSpec>& specs, int layer) {
  const std::string& key = spec_of(specs, layer).tied_key;
  if (key.empty())
    return layer;
  const auto first = std::find_if(specs.begin(), specs.end(),
                                  [&](const LayerSpec& spec) { return spec.tied_key == key; });
  return static_cast<int>(first - specs.begin());
}

std::pair<std::string, std::string> owner_name(const std::vector<LayerSpec>& specs, int layer,
                                               const std::string& parameter) {
  const LayerSpec& own = spec_of(specs, layer);
  const auto tied = tied_place(own, parameter);
  if (!tied)
    return {own.name, parameter};
  const LayerSpec& owner = spec_of(specs, tied_owner(specs, layer));
  return {owner.name, owner.tied_weights[*tied]};
}

std::map<std::string, std::set<int>> stages_of_keys(const std::vector<LayerSpec>& specs,
                                                    const std::vector<int>& boundaries) {
  std::map<std::string, std::set<int>> stages;
  for (std::size_t stage = 0; stage + 1 < boundaries.size(); ++stage)
    for (int layer = boundaries[stage]; layer < boundaries[stage + 1]; ++layer)
      if (const std::string& key = spec_of(specs, layer).tied_key; !key.empty())
        stages[key].insert(static_cast<int>(stage));
  return stages;
}

at::Tensor Layer::forward(const at::Tensor&, const CallContext&) {
  throw plan::InputError("this layer takes several tensors: call `forward_all`");
}

Tensors Layer::forward_all(const Tensors& inputs, const CallContext& context) {
  if (inputs.size() != 1)
    throw plan::InputError(fmt::format("this layer takes one tensor, but got {}", inputs.size()));
  return {forward(inputs.front(), context)};
}

namespace {

std::shared_ptr<Layer> build_whole(const std::vector<LayerSpec>& specs, int index, int base_seed) {
  auto layer = build_seeded(specs, index, base_seed);
  const LayerSpec& spec = spec_of(specs, index);
  if (spec.tied_key.empty())
    return layer;
  const Tensors weights = tied_parameters(spec, *layer);
  if (const int owner = tied_owner(specs, index); owner != index) {
    const auto first = build_seeded(specs, owner, base_seed);
    const LayerSpec& other = spec_of(specs, owner);
    const Tensors shared = tied_parameters(other, *first);
    check_tied(other, shared, spec, weights);
    const at::NoGradGuard no_grad;
    for (std::size_t w = 0; w < weights.size(); ++w)
      weights[w].copy_(shared[w]);
  }
  return layer;
}

/// Copies a tensor-parallel rank's part of the whole layer's parameters.
void take_part(Layer& shard, const Layer& whole, const std::string& layer,
               const TensorParallelPlace& place) {
  const at::NoGradGuard no_grad;
  const auto wholes = whole.named_parameters();
  for (const auto& named : shard.named_parameters()) {
    const at::Tensor* const numbers = wholes.find(named.key());
    if (numbers == nullptr)
      throw plan::InputError(fmt::format(
          "layer {}: the partitioned layer has a parameter '{}' that the whole layer does not have",
          layer, named.key()));
    const auto cut = find_cut(shard, named.key());
    const PartIndex seat = cut ? seat_of(*cut, place) : PartIndex();
    const at::Tensor part = cut ? part_of(*numbers, *cut, seat) : *numbers;
    if (part.sizes() != named.value().sizes())
      throw plan::InputError(fmt::format(
          "layer {}: parameter '{}' of tensor-parallel rank {} of {} has {} elements, but its part "
          "of the whole has {}",
          layer, named.key(), seat.index, seat.count, named.value().numel(), part.numel()));
    named.value().copy_(part);
  }
}

/// Builds a layer and fills it with given numbers, which replace its random ones.
std::shared_ptr<Layer> build_filled(const LayerSpec& spec, const TensorParallelPlace& place) {
  const bool cut = is_cut(spec, place);
  std::shared_ptr<Layer> layer;
  {
    const std::lock_guard lock(generator_mutex());
    layer = cut ? spec.build_shard(place) : spec.build();
  }
  if (const Tensors all = layer->parameters(); !all.empty() && all.front().is_meta())
    return layer;  // the layer is only counted and has no numbers
  const at::NoGradGuard no_grad;
  spec.fill(*layer, cut ? place : TensorParallelPlace());
  return layer;
}

}  // namespace

std::shared_ptr<Layer> build_layer(const std::vector<LayerSpec>& specs, int index, int base_seed,
                                   const TensorParallelPlace& place) {
  const LayerSpec& spec = spec_of(specs, index);
  if (spec.fill)
    return build_filled(spec, place);
  const std::lock_guard lock(generator_mutex());
  auto whole = build_whole(specs, index, base_seed);
  if (!is_cut(spec, place))
    return whole;
  auto shard = spec.build_shard(place);
  take_part(*shard, *whole, spec.name, place);
  return shard;
}

std::shared_ptr<Layer> build_layer(const TrainingSetup& setup, int index, at::Device device,
                                   const TensorParallelPlace& place) {
  auto layer = build_layer(setup.layers, index, setup.base_seed, place);
  if (setup.precision != at::kFloat)
    layer->to(setup.precision);
  if (!device.is_cpu())
    layer->to(device);
  return layer;
}

std::vector<at::Tensor> parameters_of(const std::vector<std::shared_ptr<Layer>>& layers) {
  std::vector<at::Tensor> parameters;
  for (const auto& layer : layers)
    for (const at::Tensor& parameter : layer->parameters())
      parameters.push_back(parameter);
  return parameters;
}

Tensors run_layer(const LayerSpec& spec, Layer& layer, int index, int base_seed,
                  const Tensors& inputs, const CallContext& context) {
  if (!spec.random)
    return layer.forward_all(inputs, context);
  const std::lock_guard lock(generator_mutex());
  at::manual_seed(hash_of({base_seed, index, context.step, context.microbatch}));
  return layer.forward_all(inputs, context);
}

at::Tensor loss_of(const TrainingSetup& setup, const Tensors& outputs, const Tensors& targets,
                   const TensorParallelPlace& place) {
  const LayerSpec& last = setup.layers.back();
  return is_cut(last, place) && last.shard_loss ? last.shard_loss(outputs, targets, place)
                                                : setup.loss(outputs, targets);
}

at::Tensor cross_entropy(const Tensors& outputs, const Tensors& targets) {
  return at::cross_entropy_loss(outputs.front().flatten(0, -2), targets.front().flatten());
}

}  // namespace pipewright::exec
