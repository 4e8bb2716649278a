#pragma once

// A model as a pipeline sees it: its layers, how they are cut into stages, and what is computed
// with them.

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "pipewright/engine/layer_changes.hpp"
#include "pipewright/engine/split_points.hpp"
#include "pipewright/exec/training/layer_spec.hpp"
#include "pipewright/plan/cluster/topology.hpp"

namespace pipewright::engine {

/// Boundaries of so many stages, such as {0, 2, 5} of two.
using Partitioner =
    std::function<std::vector<int>(const std::vector<exec::LayerSpec>&, int stages)>;

/// How layers are cut into stages: by a method, at explicit boundaries such as {0, 2, 5}, at
/// points, or by a function, such as `loop::by_measured_cost`. Methods: "uniform" counts layers,
/// "parameters" balances parameters, "type:REGEX" balances the layers in whose name or class
/// (LayerSpec::type) REGEX is found.
using PartitionBy =
    std::variant<std::string, std::vector<int>, std::vector<SplitPoint>, Partitioner>;

struct PipelineOptions {
  /// Axes pipe, with replicas data, and with shards of layers (LayerSpec::build_shard) tensor.
  plan::Topology topology = plan::pipe_data_topology(1, 1);
  int stages_per_rank = 1;
  PartitionBy partition = std::string("parameters");
  exec::Loss loss{};            // none: the module is for inference
  int base_seed = 0;            // weights depend on it and the layer alone, not on the partition
  int checkpoint_interval = 0;  // layers that are recomputed together in the backward; 0: none are
  /// Of a checkpoint_interval of 1: layers in whose name or class this pattern is found run again,
  /// all others keep what they need. Empty: all do.
  std::string checkpointable_layers{};
  /// Of a checkpoint_interval of 1: runs each of those layers in place of `run_again_in_backward`.
  CheckpointFunction checkpoint{};
  /// False: layers draw their first weights one behind the other (`seeded_in_a_row`).
  bool seed_layers = true;
  /// Seeds LibTorch's generator before each layer is built, in place of both.
  std::function<void(int base_seed, int layer)> seed{};
  /// Parameters that are not trained, as `frozen` has it: those in whose LAYER.PARAMETER this
  /// pattern is found. Empty: none beside those whose layers say so.
  std::string frozen{};
};

/// One stage, for those who look.
struct StageDescription {
  int index = 0;
  int first_layer = 0;
  int end_layer = 0;  // the first layer after it
  std::vector<std::string> layers;
  bool is_first = false;
  bool is_last = false;
};

class PipelineModule {
 public:
  /// Layers are built where a stage needs them; "parameters" counts them without their numbers
  /// (without_memory.hpp), and so is what `frozen` names. Throws InputError when two layers have
  /// the same name, nothing is found to freeze, or the partition does not fit
  /// layers and topology.
  PipelineModule(std::vector<exec::LayerSpec> layers, PipelineOptions options);

  const std::vector<exec::LayerSpec>& layers() const { return layers_; }
  const std::vector<int>& boundaries() const { return boundaries_; }
  const PipelineOptions& options() const { return options_; }

  std::vector<StageDescription> stages() const;
  int stage_count() const { return static_cast<int>(boundaries_.size()) - 1; }
  /// Ranks of one pipeline.
  int pipeline_ranks() const;
  /// Pipelines side by side.
  int replicas() const;
  /// That share out each stage.
  int shards() const;

 private:
  std::vector<exec::LayerSpec> layers_;
  PipelineOptions options_;
  std::vector<int> boundaries_;
};

/// How many numbers each layer trains, tied weights in each layer that has them.
std::vector<std::int64_t> parameter_counts(const std::vector<exec::LayerSpec>& layers);

}  // namespace pipewright::engine
