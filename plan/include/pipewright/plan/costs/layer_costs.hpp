#pragma once

// Costs of each layer for one microbatch on one device, measured or written by hand. Planning and
// prediction know nothing else about a layer.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/costs/runtime_cost.hpp"
#include "pipewright/plan/costs/work.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

/// How long a layer computes, for one microbatch.
struct LayerTimes {
  Seconds forward{};
  Seconds input_gradient{};   // the part of the backward that yields the input's gradient
  Seconds weight_gradient{};  // the rest of the backward
  Seconds splitting{};        // how much longer these two take than an unsplit backward
  Seconds optimizer_step{};   // for this layer's parameters, once per step
  /// The parts of the forward and of the input gradient that are communication among tensor-,
  /// context- and expert-parallel ranks (`with_shard_times`); 0 in a file.
  Seconds shards{}, backward_shards{};
  friend bool operator==(const LayerTimes&, const LayerTimes&) = default;
};

/// Collectives that the ranks of a partitioned layer make in its forward and in its backward for
/// one microbatch: their number, and the bytes of each rank each time.
struct PartitionCollectives {
  int times = 0;
  Bytes bytes{};
  int backward_times = -1;  // −1: as many as in the forward
  friend bool operator==(const PartitionCollectives&, const PartitionCollectives&) = default;
};

/// Load imbalance of a mixture of experts on `ranks` expert-parallel ranks: compute and all-to-all
/// bytes of the busiest rank over the mean of all ranks, from 1 to `ranks`.
struct ExpertLoad {
  int ranks = 2;
  double busiest = 1;
  friend bool operator==(const ExpertLoad&, const ExpertLoad&) = default;
};

/// Costs of one layer. Its times are those of a core whose neighbors are idle. A peak is the most
/// memory that is alive at once. A peak of 0 means that it was not measured; the comments say which
/// value replaces it. The list of the fields is in src/costs/layer_cost_fields.hpp.
struct LayerCost : LayerTimes {
  std::string name;
  Bytes parameters{};
  Bytes activation{};  // saved for the backward, in addition to the input
  Bytes output{};      // input of the next layer
  // Peak of the forward, above the memory before it; and of the backward, above input and
  // activation, the output's gradient included.
  Bytes forward_peak{};
  Bytes backward_peak{};
  bool saves_input = false;     // the backward needs the layer's input
  bool saves_output = false;    // the backward needs its output; `activation` then includes it
  bool output_is_view = false;  // the output is a view of the input's memory
  double spread = 0;            // interquartile range over median, of forward plus backward
  Bytes tied{};                 // the part of the parameters that is shared with other layers
  /// Part of the activation that the input gradient frees; the weight gradient frees the rest.
  Bytes freed_by_input_gradient{};
  /// Intermediate gradients that the input gradient leaves to the weight gradient, besides the
  /// activation.
  Bytes gradients_for_weights{};
  // Peaks of a split backward and of a forward without autograd graph. 0: use `backward_peak` for
  // the first two and `forward_peak` for the third.
  Bytes input_gradient_peak{};
  Bytes weight_gradient_peak{};
  Bytes forward_peak_without_graph{};
  bool input_for_weights = false;  // a separate weight gradient needs the layer's input
  /// A separate weight gradient needs the output's gradient, which `gradients_for_weights` then
  /// includes.
  bool output_gradient_for_weights = false;
  Bytes selective_activation{};  // part of the activation that selective recomputation drops
  Seconds selective_forward{};   // time to recompute that part
  LayerTimes contended{};        // times while `LayerCosts::busy_cores` cores compute at once
  Bytes workspace{};          // resident on its rank at all times; the largest of its layers counts
  Bytes expert_parameters{};  // part of the parameters that belongs to routed experts
  /// Gradients that its rank holds in addition to those of its parameters: for expert-parallel
  /// experts, the gradients of each other pipeline (`costs_of_shards`); 0 in a file.
  Bytes pipeline_gradients{};
  // Communication, not included in the times above: a cluster's links determine its time.
  PartitionCollectives tensor_all_reduces{};   // all-reduces of outputs among tensor-parallel ranks
  PartitionCollectives expert_all_to_alls{};   // all-to-alls of tokens, in both directions
  PartitionCollectives context_all_gathers{};  // all-gathers of keys and values
  /// Measured load imbalances, by ascending number of ranks. Empty: not measured, and experts are
  /// assumed to be equally busy (expert_loads.hpp).
  std::vector<ExpertLoad> expert_loads{};
  friend bool operator==(const LayerCost&, const LayerCost&) = default;
};

inline int backward_times(const PartitionCollectives& traffic) {
  return traffic.backward_times < 0 ? traffic.times : traffic.backward_times;
}

/// Costs of all layers of a model, and the conditions under which they were measured.
struct LayerCosts {
  std::string device;       // such as the processor's name
  std::string dtype;        // type of the parameters
  std::string software;     // such as "LibTorch 2.11.0"
  int microbatch_size = 1;  // number of samples that all costs refer to
  // Number of ranks that the measured layers are partitioned over, along each axis.
  int tensor = 1;
  int context = 1;
  int expert = 1;
  Seconds load;                // to produce one microbatch of input
  Seconds load_target{};       // to produce its targets
  bool reads_on_rank = false;  // reading ahead uses the rank's own core, for lack of another
  /// Under ZeRO stages 2 and 3, true if layers are all-gathered and their gradients reduced one
  /// after another, two at a time, as FSDP does; false if a whole stage at a time, as our executor
  /// does.
  bool shards_by_layer = false;
  Bytes input;          // one microbatch, which the first stage holds until its backward
  Bytes target;         // its targets, which the last stage holds until its backward
  Bytes workspaces{};   // reserved on a rank's device for matrix products, for all layers
  Seconds iteration{};  // fixed time of a rank for each step, in addition to its layers
  std::vector<LayerCost> layers;
  LayerCost loss;      // runs after the last layer, on the last stage
  int busy_cores = 1;  // during measurement of the contended times; 1: none were measured
  /// Variation of the device's speed during the measurement: 9 of 10 repeats were within this
  /// fraction of the median.
  double drift = 0;
  Seconds measured_over{};               // from the first to the last repeat
  std::optional<RuntimeCost> runtime{};  // runtime that runs the layers, if it was measured
  friend bool operator==(const LayerCosts&, const LayerCosts&) = default;
};

/// Returns the costs with the times of a core while `busy_cores` cores compute at once.
LayerCosts contended(LayerCosts costs);

/// Returns the costs for another microbatch size: times, saved and sent bytes are scaled in
/// proportion; parameters and their costs remain.
LayerCosts scaled_to(LayerCosts costs, int microbatch_size);

/// Returns the size of a parameter in the measured type, or nothing for an unknown type.
std::optional<int> bytes_per_parameter(const LayerCosts& costs);

/// Returns the time of this work on one microbatch of the layer. A Load takes no time.
Seconds time_of(Work work, const LayerCost& cost);

/// Returns the time for which the layer occupies its rank for one microbatch: the weight that a
/// partition balances.
Seconds compute_time(const LayerCost& cost);

Json to_json(const LayerCosts& costs);
LayerCosts layer_costs_from_json(const JsonDocument& document);

}  // namespace pipewright::plan
