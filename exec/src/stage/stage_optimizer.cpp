#include "pipewright/exec/stage/stage_optimizer.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>

#include "gradient_sums.hpp"
#include "pipewright/exec/stage/layer_observer.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/error.hpp"
#include "scattered_gradients.hpp"

namespace pipewright::exec {
namespace {

std::vector<int> in_order(const std::map<int, std::vector<int>>& by_group) {
  std::vector<int> all;
  for (const auto& [group, members] : by_group)
    all.insert(all.end(), members.begin(), members.end());
  std::sort(all.begin(), all.end());
  return all;
}

GradientSources sources_of(const StageSpec& spec, const StageLayers& layers) {
  GradientSources sources{.own = spec.place.experts.index,
                          .groups_of_each = spec.groups_of_pipeline};
  const auto& trained = layers.trained();
  for (int layer = spec.first; layer < spec.last; ++layer)
    for (const ParameterAlias& alias : layers.at(layer).aliases()) {
      const auto found = std::ranges::find_if(trained, [&](const TrainedParameter& own) {
        return own.layer == layer && own.name == alias.parameter;
      });
      if (found == trained.end())  // it is frozen
        at::Tensor(alias.leaf).set_requires_grad(false);
      else
        sources.aliases.push_back(
            {static_cast<std::size_t>(found - trained.begin()), alias.source, alias.leaf});
    }
  return sources;
}

/// Returns true if a plan with the same bits can partition parameters among ranks.
bool may_be_cut(const TrainingSetup& setup, const TensorParallelPlace& place) {
  return place.groups > 1 || std::any_of(setup.layers.begin(), setup.layers.end(),
                                         [](const LayerSpec& layer) { return layer.has_experts; });
}

void require_shardable(const TrainedParameter& parameter) {
  const auto& memory = parameter.value.storage();
  if (!parameter.value.is_contiguous() || memory.nbytes() != parameter.value.nbytes() ||
      memory.allocator() == nullptr)
    throw plan::InputError(
        fmt::format("parameter {} shares its memory with another tensor, so it cannot be freed and "
                    "gathered. Use ZeRO stage 1 or 2",
                    parameter.name));
}

}  // namespace

StageOptimizer::StageOptimizer(const StageSpec& spec, const TrainingSetup& setup,
                               const StageLayers& layers)
    : spec_(spec), setup_(setup), layers_(layers) {
  GradientSources sources = sources_of(spec, layers);
  Tensors parameters;
  std::vector<RuledParameter> named;
  std::vector<ParameterRule> rules;
  std::vector<bool> of_experts(layers.trained().size(), false);
  for (const TrainedParameter& own : layers.trained()) {
    parameters.push_back(own.value);
    auto [layer, name] = owner_name(setup.layers, own.layer, own.name);
    named.push_back({std::move(layer), std::move(name), own.value.sizes().vec()});
    if (setup.optimizer.rule)
      rules.push_back(setup.optimizer.rule(named.back()));
  }
  for (const GradientAlias& alias : sources.aliases)
    of_experts[alias.parameter] = true;
  optimizer_ = std::make_unique<Optimizer>(
      parameters, setup.optimizer, spec.shard,
      may_be_cut(setup, spec.place) ? Places::MayDiffer : Places::PositionsFixed,
      std::move(of_experts), rules, std::move(named));
  const bool exact = setup.exact && spec.step_every == 0;
  if (spec.shard.gradients)
    scattered_ =
        std::make_unique<ScatteredGradients>(std::move(parameters), optimizer_->gradients(),
                                             in_order(spec.microbatches), exact, sources);
  else
    gradients_ = std::make_unique<GradientSums>(std::move(parameters), spec.microbatches, exact,
                                                std::move(sources));
  if (spec.shard.parameters)
    std::ranges::for_each(layers.trained(), require_shardable);
  free_parameters();
}

StageOptimizer::~StageOptimizer() = default;

/// Resizes the storage itself, so that tensors saved by autograd see it as well.
void StageOptimizer::resize_parameters(bool whole) {
  const auto& parameters = optimizer_->parameters();
  for (std::size_t p = 0; spec_.shard.parameters && p < parameters.size(); ++p)
    if (optimizer_->is_divided(p)) {
      const std::size_t bytes = whole ? parameters[p].nbytes() : 0;
      c10::StorageImpl* const memory = parameters[p].storage().unsafeGetStorageImpl();
      memory->set_data_ptr_noswap(memory->allocator()->allocate(bytes));
      memory->set_nbytes(bytes);
    }
}

void StageOptimizer::begin(int microbatch) {
  if (scattered_)
    scattered_->begin();
  else
    gradients_->begin(microbatch);
}

void StageOptimizer::end(int microbatch) {
  if (scattered_)
    scattered_->end();
  else
    gradients_->end(microbatch);
}

void StageOptimizer::finish_gradients(const Pass& pass) {
  if (scattered_)
    scattered_->finish();
  else
    gradients_->finish();
  if (!setup_.before_step)
    return;
  const at::NoGradGuard no_grad;
  StepGradients shown{spec_.rank, spec_.index, pass.step, pass.loss_scale, {}};
  for (const Optimizer::State& slice : optimizer_->gradient_slices())
    shown.gradients.push_back(
        {optimizer_->named()[slice.parameter], slice.value, slice.begin, slice.whole});
  setup_.before_step(shown);
}

void StageOptimizer::step(const plan::Instruction& i, double learning_rate,
                          const GradientUse& use) {
  const auto update = [&](std::size_t first, std::size_t last) {
    if (spec_.step_every > 0)
      optimizer_->leave_weights(first, last);
    optimizer_->step(first, last, learning_rate, use);
  };
  const auto& trained = layers_.trained();
  if (spec_.observer == nullptr)
    return update(0, trained.size());
  std::size_t first = 0;
  for (int layer = spec_.first; layer < spec_.last; ++layer) {
    std::size_t last = first;
    while (last < trained.size() && trained[last].layer == layer)
      ++last;
    observed(spec_.observer, i, plan::InstructionKind::OptimizerStep, layer,
             [&] { update(first, last); });
    first = last;
  }
}

}  // namespace pipewright::exec
