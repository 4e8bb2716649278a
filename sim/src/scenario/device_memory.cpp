#include "pipewright/sim/scenario/device_memory.hpp"

#include <algorithm>

#include "pipewright/models/transformer/transformer_costs.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/model/hugging_face_shape.hpp"
#include "pipewright/plan/model/transformer_shape.hpp"
#include "pipewright/plan/scenario/scenario_cut.hpp"

namespace pipewright::sim {
namespace {

bool is_gpu(const plan::LayerCosts& costs) {
  return costs.software == models::analytic_software || costs.device.starts_with("NVIDIA");
}

/// Returns why the allocator's replay does not apply; empty: it does.
std::string refusal_of(const plan::Scenario& scenario, const plan::LayerCosts& costs) {
  if (plan::transformer_of(scenario.model) == nullptr)
    return "model: only the tensors of transformers are replayed";
  if (scenario.model.find<plan::HuggingFaceShape>() != nullptr ||
      costs.software != models::analytic_software)
    return "costs: only layers with fused kernels are replayed, not the executor's own layers";
  if (!plan::is_mixed(scenario.training.precision))
    return "training.precision: only the tensors of 16-bit training are replayed";
  if (scenario.training.cuda_graphs)
    return "training.cuda_graphs: the memory pools of CUDA graphs are not replayed";
  return {};
}

/// Returns transformer layers by stage. The partition's layers are the embedding, the transformer
/// layers and the head.
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

std::vector<models::DeviceMemory> device_memory(const plan::Scenario& scenario,
                                                const plan::LayerCosts& costs,
                                                const ScenarioPlan& plan,
                                                const std::vector<MemoryPeak>& peaks) {
  std::vector<models::DeviceMemory> ranks;
  if (!is_gpu(costs)) {
    for (const MemoryPeak& peak : peaks)
      ranks.push_back({.allocated = peak.held, .reserved = peak.held});
    return ranks;
  }
  plan::Cut cut = plan::cut_of(scenario);
  std::string refused = refusal_of(scenario, costs);
  if (refused.empty()) {
    const plan::TransformerTraining training =
        plan::training_of(*plan::transformer_of(scenario.model), plan::batch_of(scenario));
    cut.stage_layers = layers_of_stages(plan.partition, training.model.layers);
    try {
      return models::replayed_memory(training, cut);
    } catch (const plan::InputError& error) {
      refused = error.what();
    }
  }
  for (const MemoryPeak& peak : peaks)
    ranks.push_back(models::gpu_memory(peak.held, cut, refused));
  return ranks;
}

std::vector<plan::Bytes> needs_of(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                                  const ScenarioPlan& plan, const std::vector<MemoryPeak>& peaks) {
  return totals_of(device_memory(scenario, costs, plan, peaks));
}

}  // namespace pipewright::sim
