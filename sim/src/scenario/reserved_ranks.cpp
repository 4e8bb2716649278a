#include "pipewright/sim/scenario/reserved_ranks.hpp"

#include <algorithm>

#include "pipewright/models/transformer/transformer_costs.hpp"
#include "pipewright/plan/model/hugging_face_shape.hpp"
#include "pipewright/plan/model/transformer_shape.hpp"
#include "pipewright/plan/scenario/scenario_cut.hpp"

namespace pipewright::sim {
namespace {

/// Empty: its tensors are those that are replayed.
std::string refusal_of(const plan::Scenario& scenario, const plan::LayerCosts& costs) {
  if (plan::transformer_of(scenario.model) == nullptr)
    return "model: the tensors of a transformer alone are replayed";
  if (scenario.model.find<plan::HuggingFaceShape>() != nullptr ||
      costs.software != models::analytic_software)
    return "costs: the executor's own layers are not replayed, those of fused kernels are";
  if (!plan::is_mixed(scenario.training.precision))
    return "training.precision: the tensors of 16-bit training alone are replayed";
  if (scenario.training.cuda_graphs)
    return "training.cuda_graphs: the pools of graphs are not replayed";
  return {};
}

/// The partition's layers are the embedding, the transformer's and the head.
std::vector<int> layers_of_stages(const plan::Partition& partition, int layers) {
  const auto before = [&](std::size_t stage) {
    return std::clamp(partition.boundaries[stage] - 1, 0, layers);
  };
  std::vector<int> by_stage;
  for (std::size_t stage = 0; stage + 1 < partition.boundaries.size(); ++stage)
    by_stage.push_back(before(stage + 1) - before(stage));
  return by_stage;
}

}  // namespace

std::vector<models::ReservedMemory> reserved_ranks(const plan::Scenario& scenario,
                                                   const plan::LayerCosts& costs,
                                                   const ScenarioPlan& plan) {
  const auto ranks = static_cast<std::size_t>(scenario.pipeline.ranks);
  if (const std::string refused = refusal_of(scenario, costs); !refused.empty())
    return std::vector(ranks, models::ReservedMemory{.refused = refused});
  const plan::TransformerTraining training =
      plan::training_of(*plan::transformer_of(scenario.model), plan::batch_of(scenario));
  plan::Cut cut = plan::cut_of(scenario);
  cut.stage_layers = layers_of_stages(plan.partition, training.model.layers);
  std::vector<models::ReservedMemory> all;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    all.push_back(models::reserved_memory(training, cut, static_cast<int>(rank),
                                          memory_of(plan.costs.cluster, static_cast<int>(rank))));
  return all;
}

}  // namespace pipewright::sim
