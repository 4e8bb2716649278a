#pragma once

// What each layer costs for one microbatch on one device, as measured (or as somebody wrote it
// down). Everything that planning and prediction know of a layer stands here.

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
  Seconds input_gradient{};   // the part of the backward that leads to the layer's input
  Seconds weight_gradient{};  // the rest of the backward
  Seconds splitting{};        // that these two take longer than the backward does in one go
  Seconds optimizer_step{};   // for this layer's parameters, once per step
  /// The parts of the forward and of the input gradient in which shards pass on what they have to
  /// (`with_shard_times`); 0 in a file.
  Seconds shards{}, backward_shards{};
  friend bool operator==(const LayerTimes&, const LayerTimes&) = default;
};

/// What shards of a layer pass on among each other in the forward of a microbatch and in its
/// backward: so many times, and the bytes of each shard each time.
struct ShardTraffic {
  int times = 0;
  Bytes bytes{};
  int backward_times = -1;  // −1: as often as in the forward
  friend bool operator==(const ShardTraffic&, const ShardTraffic&) = default;
};

/// Of so many ranks that share out a mixture's experts, what the busiest one computes and exchanges
/// over the mean of all: 1 to `ranks`.
struct ExpertLoad {
  int ranks = 2;
  double busiest = 1;
  friend bool operator==(const ExpertLoad&, const ExpertLoad&) = default;
};

/// The times that a layer has by itself are those of a core whose neighbours rest. A peak is the
/// most memory that is alive at once. Some peaks may be 0, which means that nobody measured them;
/// their comments say what stands in. The list of the fields is src/costs/layer_cost_fields.hpp.
struct LayerCost : LayerTimes {
  std::string name;
  Bytes parameters{};
  Bytes activation{};  // the layer keeps it for its backward, beside its input
  Bytes output{};      // the layer after takes it in
  // Memory above what was there before the forward, and above input and activation in the backward,
  // where the output's gradient counts.
  Bytes forward_peak{};
  Bytes backward_peak{};
  bool saves_input = false;     // the backward needs the layer's input
  bool saves_output = false;    // the backward needs its output, which `activation` then includes
  bool output_is_view = false;  // the output is the input's memory under another shape
  double spread = 0;  // interquartile range over median, measured of forward plus backward
  Bytes tied{};       // the part of the parameters that other layers share
  Bytes freed_by_input_gradient{};  // the part of the activation that goes with the input gradient;
                                    // the rest goes with the weight gradient
  Bytes gradients_for_weights{};    // gradients on their way that the input gradient leaves to the
                                    // weight gradient, beside the activation
  // The peaks of parts that run by themselves. 0: as `backward_peak`, and as `forward_peak`.
  Bytes input_gradient_peak{};
  Bytes weight_gradient_peak{};
  Bytes forward_peak_without_graph{};
  bool input_for_weights = false;            // a lone weight gradient needs the layer's input
  bool output_gradient_for_weights = false;  // it needs the output's gradient, which
                                             // `gradients_for_weights` then includes
  Bytes selective_activation{};  // the part of the activation that selective recomputation drops
  Seconds selective_forward{};   // the time to compute that part again
  LayerTimes contended{};        // the times while `LayerCosts::busy_cores` compute at once
  Bytes workspace{};             // that its rank has throughout, the most of its layers
  Bytes expert_parameters{};     // the part of the parameters that routed experts have
  /// Gradients that its rank holds beside those of its parameters: of shared-out experts those of
  /// each other pipeline (`costs_of_shards`); 0 in a file.
  Bytes pipeline_gradients{};
  // Beside the times: what the link makes of it is added where costs meet a cluster.
  ShardTraffic tensor_sums{};       // of outputs
  ShardTraffic expert_exchanges{};  // of tokens, in both directions
  ShardTraffic context_gathers{};   // of keys and values
  /// As the data have it, by number of ranks, which rises; empty: nobody measured it, and experts
  /// are taken for equally busy (expert_loads.hpp).
  std::vector<ExpertLoad> expert_loads{};
  friend bool operator==(const LayerCost&, const LayerCost&) = default;
};

inline int backward_times(const ShardTraffic& traffic) {
  return traffic.backward_times < 0 ? traffic.times : traffic.backward_times;
}

struct LayerCosts {
  std::string device;       // such as the processor's name
  std::string dtype;        // the parameters' type
  std::string software;     // such as "LibTorch 2.11.0"
  int microbatch_size = 1;  // samples that every figure is for
  // Of which shard of a layer: by how many ranks it is cut along each axis.
  int tensor = 1;
  int context = 1;
  int expert = 1;
  Seconds load;                // to produce one microbatch of input
  Seconds load_target{};       // to produce its targets
  bool reads_on_rank = false;  // what reads ahead has no core but its rank's
  /// Under ZeRO 2 and 3, layers are gathered and their gradients reduced one after another, two at
  /// a time, as FSDP does; otherwise a stage at a time, as our executor does.
  bool shards_by_layer = false;
  Bytes input;          // one microbatch, which the first stage holds until its backward
  Bytes target;         // its targets, which the last stage holds until its backward
  Bytes workspaces{};   // that a rank's device sets aside for products, beside all layers
  Seconds iteration{};  // that a rank takes once for each step, beside its layers
  std::vector<LayerCost> layers;
  LayerCost loss;      // runs after the last layer, on the last stage
  int busy_cores = 1;  // while the contended times were measured; 1: there are none
  double drift = 0;    // how far the device's speed changed while all this was measured: 9 of 10
                       // repeats were within this fraction of the middle one
  Seconds measured_over{};               // from the first repeat to the last
  std::optional<RuntimeCost> runtime{};  // that runs the layers, where it was measured as well
  friend bool operator==(const LayerCosts&, const LayerCosts&) = default;
};

/// The costs as a core finds them while `busy_cores` compute at once.
LayerCosts contended(LayerCosts costs);

/// The costs for microbatches of another size: times and what is kept and sent in proportion;
/// parameters and what they take as they are.
LayerCosts scaled_to(LayerCosts costs, int microbatch_size);

/// The size of a parameter in the type that was measured; nothing for a type that is not known.
std::optional<int> bytes_per_parameter(const LayerCosts& costs);

/// How long this work on one microbatch takes a layer. A Load takes it no time.
Seconds time_of(Work work, const LayerCost& cost);

/// What a partition balances: the time that a layer holds its rank for one microbatch.
Seconds compute_time(const LayerCost& cost);

Json to_json(const LayerCosts& costs);
LayerCosts layer_costs_from_json(const JsonDocument& document);

}  // namespace pipewright::plan
