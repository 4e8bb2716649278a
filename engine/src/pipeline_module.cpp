#include "pipewright/engine/pipeline_module.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "pipewright/engine/module_layers.hpp"
#include "pipewright/exec/training/without_memory.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/partition/partition.hpp"
#include "pipewright/plan/partitioners/layer_weights.hpp"
#include "pipewright/plan/partitioners/name_pattern.hpp"
#include "tensor_axis.hpp"

namespace pipewright::engine {
namespace {

std::vector<std::string> names_of(const std::vector<exec::LayerSpec>& layers) {
  std::vector<std::string> names;
  for (const exec::LayerSpec& layer : layers)
    names.push_back(layer.name);
  return names;
}

void check(const std::vector<exec::LayerSpec>& layers, const PipelineOptions& options) {
  if (layers.empty())
    throw plan::InputError("the model has no layers");
  std::set<std::string> names;
  for (const exec::LayerSpec& layer : layers)
    if (!names.insert(layer.name).second)
      throw plan::InputError(
          fmt::format("two layers have the name \"{}\": names must be unique", layer.name));
  if (options.stages_per_rank < 1)
    throw plan::InputError(
        fmt::format("stages_per_rank is {}, but must be at least 1", options.stages_per_rank));
  if (options.checkpoint_interval < 0)
    throw plan::InputError(
        fmt::format("checkpoint_interval is {}, but must be at least 0 (0: none)",
                    options.checkpoint_interval));
}

void check_axes(const plan::Topology& topology) {
  for (const std::string& axis : topology.axes())
    if (axis != "pipe" && axis != "data" && axis != "tensor")
      throw plan::InputError(fmt::format(
          "topology axis \"{}\": a pipeline runs along pipe, data and tensor only", axis));
}

/// Returns the length of an axis, or 1 if the topology does not have it.
int length_of(const plan::Topology& topology, const std::string& axis) {
  const auto& axes = topology.axes();
  return std::find(axes.begin(), axes.end(), axis) == axes.end() ? 1 : topology.length_of(axis);
}

std::vector<plan::LayerNames> words_of(const std::vector<exec::LayerSpec>& layers) {
  std::vector<plan::LayerNames> words;
  for (const exec::LayerSpec& layer : layers) {
    words.push_back({layer.name});
    if (!layer.type.empty())
      words.back().push_back(layer.type);
  }
  return words;
}

bool is_called(const exec::LayerSpec& layer, const plan::NamePattern& pattern) {
  return pattern.is_in(layer.name) || pattern.is_in(layer.type);
}

/// Returns the layers with per-layer recomputation for those that match.
std::vector<exec::LayerSpec> with_checkpoints(std::vector<exec::LayerSpec> layers,
                                              const PipelineOptions& options) {
  if (options.checkpoint_interval != 1)
    throw plan::InputError(
        fmt::format("checkpoint_interval is {}, but checkpointable_layers and a checkpoint "
                    "function recompute layers one by one: set it to 1",
                    options.checkpoint_interval));
  const plan::NamePattern pattern("checkpointable_layers", options.checkpointable_layers);
  bool found = false;
  for (exec::LayerSpec& layer : layers)
    if (is_called(layer, pattern)) {
      layer = checkpointed(std::move(layer), options.checkpoint);
      found = true;
    }
  if (!found)
    throw plan::InputError(fmt::format("checkpointable_layers:{} matches no layer (possible: {})",
                                       options.checkpointable_layers,
                                       plan::listed(names_of(layers))));
  return layers;
}

std::vector<exec::LayerSpec> with_seeds(std::vector<exec::LayerSpec> layers,
                                        const PipelineOptions& options) {
  if (!options.seed && !options.seed_layers)
    return seeded_in_a_row(std::move(layers));
  for (exec::LayerSpec& layer : layers)
    if (options.seed)
      layer.seed = options.seed;
  return layers;
}

/// Returns the layers with the parameters frozen whose names contain a match of the pattern.
std::vector<exec::LayerSpec> with_frozen(std::vector<exec::LayerSpec> layers,
                                         const std::string& pattern) {
  const plan::NamePattern expression("frozen", pattern);
  const std::vector<exec::LayerSpec> trained = layers;  // the original layers: tied parameters must
                                                        // be frozen together
  bool found = false;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    std::vector<std::string> names;
    for (const auto& parameter :
         build_without_memory(trained, static_cast<int>(layer))->named_parameters())
      if (expression.is_in(layers[layer].name + "." + parameter.key()))
        names.push_back(parameter.key());
    found = found || !names.empty();
    if (!names.empty())
      layers[layer] = frozen_parameters(std::move(layers[layer]), names);
  }
  if (!found)
    throw plan::InputError(
        fmt::format("frozen:{} matches no parameter, by LAYER.PARAMETER, of the layers {}", pattern,
                    plan::listed(names_of(layers))));
  return layers;
}

std::vector<double> weights_by(const std::string& method,
                               const std::vector<exec::LayerSpec>& layers) {
  plan::check_partition_method(method);
  if (method == "profile")
    throw plan::InputError(
        "the partition \"profile\" needs measured costs: give loop::by_measured_cost "
        "(pipewright/loop_torch/measured_partition.hpp), or the boundaries that `pipewright "
        "partition --costs FILE` finds");
  if (const auto pattern = plan::type_pattern(method))
    return plan::type_weights(words_of(layers), *pattern);
  if (method == "uniform")
    return std::vector<double>(layers.size(), 1.0);
  const auto counts = parameter_counts(layers);
  return {counts.begin(), counts.end()};
}

/// Computes the boundaries from each kind of PartitionBy.
struct BoundariesBy {
  const std::vector<exec::LayerSpec>& layers;
  int stages;

  std::vector<int> operator()(const std::string& method) const {
    return plan::boundaries_by(method, weights_by(method, layers), stages);
  }
  std::vector<int> operator()(const std::vector<int>& boundaries) const { return boundaries; }
  std::vector<int> operator()(const Partitioner& partitioner) const {
    return partitioner(layers, stages);
  }
  std::vector<int> operator()(const std::vector<SplitPoint>& points) const {
    return boundaries_at(points, names_of(layers));
  }
};

void check_boundaries(const std::vector<int>& boundaries, int layers, int stages) {
  if (boundaries.size() < 2 || boundaries.front() != 0 || boundaries.back() != layers)
    throw plan::InputError(
        fmt::format("the boundaries {} do not go from 0 to {}, the number of layers",
                    plan::to_string(boundaries), layers));
  for (std::size_t stage = 0; stage + 1 < boundaries.size(); ++stage)
    if (boundaries[stage] >= boundaries[stage + 1])
      throw plan::InputError(fmt::format("the boundaries {} leave stage {} without a layer",
                                         plan::to_string(boundaries), stage));
  const int found = static_cast<int>(boundaries.size()) - 1;
  if (found != stages)
    throw plan::InputError(fmt::format(
        "the boundaries {} make {} stages, but the topology and stages_per_rank ask for {}",
        plan::to_string(boundaries), found, stages));
}

}  // namespace

PipelineModule::PipelineModule(std::vector<exec::LayerSpec> layers, PipelineOptions options)
    : layers_(std::move(layers)), options_(std::move(options)) {
  check(layers_, options_);
  options_.topology = with_tensor_axis(options_.topology);
  check_axes(options_.topology);
  layers_ = with_seeds(std::move(layers_), options_);
  if (options_.checkpoint || !options_.checkpointable_layers.empty()) {
    layers_ = with_checkpoints(std::move(layers_), options_);
    options_.checkpoint_interval = 0;  // recomputation is done by the layers, not by the schedule
  }
  if (!options_.frozen.empty())
    layers_ = with_frozen(std::move(layers_), options_.frozen);
  const int count = static_cast<int>(layers_.size());
  const int stages = pipeline_ranks() * options_.stages_per_rank;
  if (stages > count)
    throw plan::InputError(
        fmt::format("{} stages asked for, but the model has {} layers", stages, count));
  boundaries_ = std::visit(BoundariesBy{layers_, stages}, options_.partition);
  check_boundaries(boundaries_, count, stages);
}

std::vector<StageDescription> PipelineModule::stages() const {
  const auto names = names_of(layers_);
  std::vector<StageDescription> stages;
  for (int index = 0; index < stage_count(); ++index) {
    StageDescription stage;
    stage.index = index;
    stage.first_layer = boundaries_[static_cast<std::size_t>(index)];
    stage.end_layer = boundaries_[static_cast<std::size_t>(index) + 1];
    stage.layers.assign(names.begin() + stage.first_layer, names.begin() + stage.end_layer);
    stage.is_first = index == 0;
    stage.is_last = index == stage_count() - 1;
    stages.push_back(std::move(stage));
  }
  return stages;
}

int PipelineModule::pipeline_ranks() const { return length_of(options_.topology, "pipe"); }

int PipelineModule::replicas() const { return length_of(options_.topology, "data"); }

int PipelineModule::shards() const { return length_of(options_.topology, "tensor"); }

std::vector<std::int64_t> parameter_counts(const std::vector<exec::LayerSpec>& layers) {
  std::vector<std::int64_t> counts;
  for (int index = 0; index < static_cast<int>(layers.size()); ++index)
    counts.push_back(exec::trained_numbers(*build_without_memory(layers, index)));
  return counts;
}

}  // namespace pipewright::engine
