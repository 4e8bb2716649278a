#include "pipewright/gui/panels/layer_strip.hpp"

#include <algorithm>
#include <cmath>

#include "pipewright/plan/costs/stage_costs.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/partitioners/layer_weights.hpp"
#include "pipewright/plan/scenario/scenario_cut.hpp"
#include "pipewright/search/drafts/what_if.hpp"

namespace pipewright::gui {
namespace {

double bytes(plan::Bytes of) { return static_cast<double>(of.value); }

std::vector<StripLayer> layers_of(const plan::Scenario& scenario, const plan::LayerCosts& costs) {
  const plan::Model model = model_of(scenario);
  const std::vector<double> weights = plan::profile_weights(costs);
  const plan::TrainingMemory training = training_memory(scenario);
  std::vector<StripLayer> layers;
  plan::LayerCosts alone = costs;
  for (std::size_t i = 0; i < costs.layers.size(); ++i) {
    const plan::LayerCost& cost = costs.layers[i];
    StripLayer layer{cost.name,          i < model.layers.size() ? model.layers[i].kind : "",
                     cost.forward.value, cost.input_gradient.value + cost.weight_gradient.value,
                     weights[i],         bytes(cost.parameters)};
    // The layer is priced as a separate stage, so that precision, ZeRO and recomputation count.
    alone.layers = {cost};
    alone.loss = {};
    const plan::StageCost stage = plan::stage_costs(alone, {{0, 1}}, training).front();
    layer.standing = bytes(standing(stage));
    layer.activation = bytes(stage.activation);
    layers.push_back(std::move(layer));
  }
  return layers;
}

/// Returns time and memory of each stage, and marks the slowest if there are several. `answer`
/// gives the rank of each stage; if it is null, stages are assumed to be placed round-robin.
std::vector<StripStage> stages_of(const plan::Scenario& scenario, const search::Answer* answer,
                                  const std::vector<int>& boundaries,
                                  const plan::LayerCosts& costs) {
  const auto stage_costs = answer != nullptr
                               ? answer->plan.costs.stages
                               : plan::stage_costs(costs, {boundaries}, training_memory(scenario));
  const std::vector<double> speeds = plan::cluster_of_ranks(scenario).rank_speeds;
  std::vector<StripStage> stages;
  std::size_t slowest = 0;
  for (std::size_t s = 0; s < stage_costs.size(); ++s) {
    StripStage stage{boundaries[s], boundaries[s + 1]};
    stage.rank = answer != nullptr
                     ? answer->plan.program().placement.rank_of(static_cast<int>(s), 0)
                     : static_cast<int>(s) % scenario.pipeline.ranks;
    const auto rank = static_cast<std::size_t>(stage.rank);
    const plan::Seconds time = stage_costs[s].forward + backward_time(stage_costs[s]);
    stage.time_s = time.value / (rank < speeds.size() ? speeds[rank] : 1);
    stage.standing = bytes(standing(stage_costs[s]));
    stage.activation = bytes(stage_costs[s].activation);
    stages.push_back(stage);
    if (stage.time_s > stages[slowest].time_s)
      slowest = s;
  }
  if (stages.size() > 1)
    stages[slowest].slowest = true;
  return stages;
}

}  // namespace

std::optional<LayerStrip> strip_of(const Workspace& workspace) {
  if (!workspace.has_plan())
    return {};
  const plan::Scenario& scenario = workspace.draft().scenario;
  const search::Answer* answer = workspace.answer();
  LayerStrip strip;
  plan::LayerCosts costs;
  try {
    if (answer != nullptr) {
      costs = answer->costs;
      strip.boundaries = answer->plan.partition.boundaries;
    } else if (const auto* chosen = std::get_if<std::vector<int>>(&scenario.pipeline.partition)) {
      costs = search::costs_of(workspace.draft());
      strip.boundaries = *chosen;
    } else {
      return {};
    }
    strip.layers = layers_of(scenario, costs);
    strip.stages = stages_of(scenario, answer, strip.boundaries, costs);
  } catch (const plan::InputError&) {
    return {};  // the costs belong to another model
  }
  return strip;
}

std::vector<double> layer_places(const std::vector<StripLayer>& layers, double width,
                                 double least) {
  const auto count = static_cast<double>(layers.size());
  std::vector<double> places{0};
  if (layers.empty())
    return places;
  least = std::min(least, width / count);
  double sum = 0;
  for (const StripLayer& layer : layers)
    sum += std::max(0.0, layer.time_s);
  // Wide layers give up the space that narrow ones need beyond their share.
  std::vector<double> widths(layers.size(), least);
  double room = width, time = sum;
  std::vector<char> narrow(layers.size(), 0);
  for (bool again = sum > 0; again;) {
    again = false;
    for (std::size_t i = 0; i < layers.size(); ++i)
      if (narrow[i] == 0 && layers[i].time_s / time * room < least) {
        narrow[i] = 1;
        room -= least;
        time -= layers[i].time_s;
        again = time > 0;
      }
  }
  for (std::size_t i = 0; i < layers.size(); ++i)
    places.push_back(places.back() + (sum <= 0         ? width / count
                                      : narrow[i] != 0 ? least
                                                       : layers[i].time_s / time * room));
  return places;
}

int nearest_layer(const std::vector<double>& places, double x, int first, int last) {
  int nearest = first;
  for (int layer = first; layer <= last; ++layer)
    if (std::abs(places[static_cast<std::size_t>(layer)] - x) <
        std::abs(places[static_cast<std::size_t>(nearest)] - x))
      nearest = layer;
  return nearest;
}

int layer_at(const std::vector<double>& places, double x) {
  if (places.size() < 2 || x < 0 || x >= places.back())
    return -1;
  return static_cast<int>(std::upper_bound(places.begin(), places.end(), x) - places.begin()) - 1;
}

}  // namespace pipewright::gui
