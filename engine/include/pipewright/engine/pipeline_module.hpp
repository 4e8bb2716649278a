#pragma once

// A model as a pipeline runs it: its layers, their partition into stages, and the loss.

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "pipewright/engine/layer_changes.hpp"
#include "pipewright/engine/split_points.hpp"
#include "pipewright/exec/training/layer_spec.hpp"
#include "pipewright/plan/cluster/topology.hpp"

namespace pipewright::engine {

/// A function that returns the boundaries of `stages` stages, such as {0, 2, 5} for two.
using Partitioner =
    std::function<std::vector<int>(const std::vector<exec::LayerSpec>&, int stages)>;

/// How layers are partitioned into stages: by a method, at explicit boundaries such as {0, 2, 5},
/// at split points, or by a function, such as `loop::by_measured_cost`. Methods: "uniform" balances
/// the number of layers, "parameters" balances parameters, and "type:REGEX" balances the layers
/// whose name or class (LayerSpec::type) contains a match of REGEX.
using PartitionBy =
    std::variant<std::string, std::vector<int>, std::vector<SplitPoint>, Partitioner>;

struct PipelineOptions {
  /// Has the axis pipe, with data parallelism also data, and with tensor parallelism
  /// (LayerSpec::build_shard) also tensor, which may be called model as in DeepSpeed.
  plan::Topology topology = plan::pipe_data_topology(1, 1);
  int stages_per_rank = 1;
  PartitionBy partition = std::string("parameters");
  exec::Loss loss{};            // empty: the module is for inference only
  int base_seed = 0;            // weights depend on it and the layer only, not on the partition
  int checkpoint_interval = 0;  // layers per recomputation segment; 0: no recomputation
  /// With a checkpoint_interval of 1: only layers whose name or class contains a match are
  /// recomputed. Empty: all are.
  std::string checkpointable_layers{};
  /// With a checkpoint_interval of 1: recomputes each of those layers, instead of
  /// `recompute_in_backward`.
  CheckpointFunction checkpoint{};
  /// False: layers initialize their weights from one continuous random stream (`seeded_in_a_row`).
  bool seed_layers = true;
  /// Called before each layer is built, to seed LibTorch's generator instead of the two methods
  /// above.
  std::function<void(int base_seed, int layer)> seed{};
  /// Freezes the parameters whose LAYER.PARAMETER contains a match of this pattern, as `frozen`
  /// does. Empty: only those frozen by their layers.
  std::string frozen{};
};

/// The description of one stage, for inspection.
struct StageDescription {
  int index = 0;
  int first_layer = 0;
  int end_layer = 0;  // one past the last layer
  std::vector<std::string> layers;
  bool is_first = false;
  bool is_last = false;
};

class PipelineModule {
 public:
  /// Layers are built only where a stage needs them. The method "parameters" and `frozen` look at
  /// parameters without allocating them (without_memory.hpp). Throws InputError if two layers have
  /// the same name, if `frozen` matches nothing, or if the partition does not fit layers and
  /// topology.
  PipelineModule(std::vector<exec::LayerSpec> layers, PipelineOptions options);

  const std::vector<exec::LayerSpec>& layers() const { return layers_; }
  const std::vector<int>& boundaries() const { return boundaries_; }
  const PipelineOptions& options() const { return options_; }

  std::vector<StageDescription> stages() const;
  int stage_count() const { return static_cast<int>(boundaries_.size()) - 1; }
  /// Returns the number of ranks of one pipeline.
  int pipeline_ranks() const;
  /// Returns the number of data-parallel replicas of the pipeline.
  int replicas() const;
  /// Returns the number of tensor-parallel ranks per stage.
  int shards() const;

 private:
  std::vector<exec::LayerSpec> layers_;
  PipelineOptions options_;
  std::vector<int> boundaries_;
};

/// Returns the number of trainable parameters of each layer. Tied weights count in every layer that
/// has them.
std::vector<std::int64_t> parameter_counts(const std::vector<exec::LayerSpec>& layers);

}  // namespace pipewright::engine
