#pragma once

// What each layer costs for one microbatch on one device, as measured (or as somebody wrote it
// down). Everything that planning and prediction know of a layer stands here.

#include <optional>
#include <string>
#include <vector>

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
  friend bool operator==(const LayerTimes&, const LayerTimes&) = default;
};

/// Its own times are those of a core while the others rest. Peaks are the most that is alive at
/// once; where 0 stands for "not known", so it is said. Its fields stand in a list in
/// src/costs/layer_cost_fields.hpp.
struct LayerCost : LayerTimes {
  std::string name;
  Bytes parameters{};
  Bytes activation{};           // kept for the backward by the layer itself, its input not counted
  Bytes output{};               // handed to the layer after
  Bytes forward_peak{};         // during the forward, above what was before
  Bytes backward_peak{};        // during the backward, above input and activation; the gradient of
                                // the output is part of it
  bool saves_input = false;     // the backward needs the layer's input
  bool saves_output = false;    // … its output, which `activation` then includes
  bool output_is_view = false;  // the output is the input's memory under another shape
  double spread = 0;            // of forward plus backward: interquartile range over median
  Bytes tied{};                 // of the parameters: those of a weight that other layers share
  Bytes freed_by_input_gradient{};  // of the activation: what the input gradient is done with; the
                                    // rest goes with the weight gradient
  Bytes gradients_for_weights{};    // beside the activation: what the input gradient leaves to the
                                    // weight gradient, the gradients on its way
  Bytes input_gradient_peak{};   // during a lone input gradient, as `backward_peak`; 0: taken to be
                                 // that
  Bytes weight_gradient_peak{};  // during a lone weight gradient, above what that found; 0: taken
                                 // to be `backward_peak`
  Bytes forward_peak_without_graph{};        // as `forward_peak`; 0: taken to be that
  bool input_for_weights = false;            // a lone weight gradient needs the layer's input
  bool output_gradient_for_weights = false;  // … its output's gradient, of `gradients_for_weights`
  Bytes selective_activation{};  // of the activation: what selective recomputation drops
  Seconds selective_forward{};   // to compute that again
  LayerTimes contended{};        // while `LayerCosts::busy_cores` compute at once
  friend bool operator==(const LayerCost&, const LayerCost&) = default;
};

struct LayerCosts {
  std::string device;       // such as the processor's name
  std::string dtype;        // of the parameters
  std::string software;     // such as "LibTorch 2.11.0"
  int microbatch_size = 1;  // samples that every figure is for
  Seconds load;             // to produce one microbatch of input
  Seconds load_target{};    // … of targets
  Bytes input;              // of one microbatch, held by the first stage until its backward
  Bytes target;             // of one microbatch, held by the last stage until its backward
  std::vector<LayerCost> layers;
  LayerCost loss;      // runs after the last layer, on the last stage
  int busy_cores = 1;  // while the contended times were measured; 1: there are none
  double drift = 0;    // of the device's speed while all this was measured, as a fraction: 9 of 10
                       // repeats were not further from the middle one
  Seconds measured_over{};  // from the first repeat to the last
  friend bool operator==(const LayerCosts&, const LayerCosts&) = default;
};

/// The costs as a core finds them while `busy_cores` compute at once.
LayerCosts contended(LayerCosts costs);

/// The costs for microbatches of another size: times and what is kept and sent in proportion;
/// parameters and what they take as they are.
LayerCosts scaled_to(LayerCosts costs, int microbatch_size);

/// In the type that was measured; nothing when it is not a known one.
std::optional<int> bytes_per_parameter(const LayerCosts& costs);

/// What a layer takes for one microbatch; of a Load nothing.
Seconds time_of(Work work, const LayerCost& cost);

/// What a partition balances: the time that a layer holds its rank for one microbatch.
Seconds compute_time(const LayerCost& cost);

Json to_json(const LayerCosts& costs);
LayerCosts layer_costs_from_json(const JsonDocument& document);

}  // namespace pipewright::plan
