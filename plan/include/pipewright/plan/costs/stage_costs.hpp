#pragma once

// Costs of whole stages: layer costs summed according to a partition. The simulator sees only
// stages.

#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/costs/schedule_costs.hpp"
#include "pipewright/plan/costs/training_memory.hpp"
#include "pipewright/plan/partition/partition.hpp"

namespace pipewright::plan {

/// Costs under full recomputation, where a microbatch's forward runs again (a Recompute
/// instruction).
struct RecomputeCost {
  Seconds first{};       // R: recomputes the last layer group
  Seconds others{};      // within the backward: recomputation of the groups before
  Bytes kept{};          // saved by the forward until the backward has run, excluding the output
  Bytes forward_peak{};  // highest during the forward, above the memory before it
  Bytes recomputed_bytes{};         // recomputed by R for the backward, including the output
  Bytes freed_by_input_gradient{};  // part of `recomputed_bytes` that the input gradient frees
  Bytes rerun_peak{};               // highest during R, above the memory before it
  Bytes backward_peak{};            // highest during the backward, above the memory that R leaves
  Bytes backward_peak_apart{};      // likewise, if parameter gradients are made in separate memory
  Bytes input_gradient_peak{};      // likewise, during a separate input gradient
  // Memory that a separate input gradient recomputes and leaves to the weight gradient.
  Bytes left_for_weights{};
  // Fraction of the backward, or of one part of it, after which the last layer is done and the
  // gradient received from the next stage can be freed.
  double backward_share = 1;
  double input_gradient_share = 1;
  double weight_gradient_share = 1;
  friend bool operator==(const RecomputeCost&, const RecomputeCost&) = default;
};

/// Costs of one stage for one microbatch.
struct StageCost : PassTimes {
  Seconds load;  // for the input of one microbatch on the first stage, its targets on the last
  Seconds optimizer_step;
  Bytes parameters;
  Bytes gradients;
  // The parts of these that other data-parallel replicas of the stage hold under ZeRO.
  Bytes parameters_elsewhere{}, gradients_elsewhere{};
  double whole_at_once = 1;  // fraction of both that is gathered at once while the stage computes
  Bytes optimizer_state;
  Bytes sent_gradients{};      // to the replicas, in the parameters' type; 0: `gradients`
  Bytes pipeline_gradients{};  // part of the gradients that comes from other pipelines' tokens
  Bytes expert_parameters{};   // part of the parameters that fewer replicas have
  Bytes workspace{};     // resident on its rank at all times; the largest of its stages counts
  Bytes loaded;          // brought by LOAD and held until the backward has run
  Bytes activation;      // saved by the forward for the backward, including the output
  Bytes forward_peak;    // highest during the forward, above the memory before it
  Bytes backward_peak;   // highest during the backward, above the memory before it
  Bytes output;          // sent to the next stage
  Bytes output_alone{};  // the output's part of the activation, if no layer saves it
  Bytes input_gradient_bytes;  // sent to the previous stage; held until its backward has run
  Bytes tied{};                // gradients of a weight that other stages share
  /// Part of the activation that the input gradient frees; the weight gradient frees the rest.
  Bytes freed_by_input_gradient{};
  Bytes input_gradient_peak{};   // highest during I, above the memory before it
  Bytes weight_gradient_peak{};  // highest during W, above the memory before it
  // Likewise, if parameter gradients are made in separate memory and remain there.
  Bytes backward_peak_apart{};
  Bytes weight_gradient_peak_apart{};
  /// Left by the input gradient to the weight gradient, without the output's gradient, which the
  /// next stage made.
  Bytes gradients_for_weights{};
  bool input_for_weights = false;            // W needs the stage's input
  bool output_gradient_for_weights = false;  // W needs the gradient of its output
  /// Communication time in the forward and in the input gradient, as in LayerTimes.
  Seconds shards{}, backward_shards{};
  Seconds splitting{};  // how much longer a split backward takes than an unsplit one
  RecomputeCost rerun{};
};

/// Sums the layer costs of each stage. The loss belongs to the last stage. Layers with `tied` bytes
/// share one weight, which a stage with several of them holds once. Throws InputError if the
/// partition has another number of layers than the costs.
///
/// With n parameters in a stage, the optimizer keeps s = 2 (AdamW), 1 (SGD with momentum) or 0
/// (SGD) values for each:
///
///   precision  parameters  gradients  optimizer state
///   full       d n         d n        s d n             d: bytes of the measured type
///   mixed      2 n         2 n        4 n + s 4 n
///              with `fp32_gradients` 4 n
///
/// The row "mixed" is that of ZeRO (Rajbhandari et al., 1910.02054, section 3.1).
///
/// Activations and times are the measured ones. Among `shards` replicas, each holds and steps its
/// part of the optimizer state, rounded up (ZeRO stage 1); from stage 2 on also its part of the
/// gradients, and under stage 3 of the parameters. Recomputation changes each layer except the
/// loss:
///
///   full       saves only its input; its backward begins with its forward and needs memory for
///              those activations as well
///   selective  saves `selective_activation` less; its backward begins with `selective_forward`
///              (Korthikanti et al., 2205.05198)
///
/// If microbatches are read ahead, a LOAD takes `wait_for_read`. With `reads_on_rank` it takes as
/// long as reading, which uses the rank's time then or earlier.
std::vector<StageCost> stage_costs(const LayerCosts& costs, const Partition& partition,
                                   const TrainingMemory& training = {});

/// Returns how much longer reading takes than the compute that hides it: at least one forward and
/// backward of the stage lie between two LOADs, and the next microbatch is read meanwhile.
Seconds wait_for_read(Seconds read, const StageCost& cost);

/// Returns the costs if R recomputes the whole stage at once.
RecomputeCost rerun_at_once(const StageCost& cost);

/// Returns the time of an unsplit backward.
Seconds backward_time(const StageCost& cost);

/// Return the time of an instruction of the stage, and the bytes that it moves. A Rerun takes the
/// time of the layers that R recomputes.
Seconds time_of(Work work, const StageCost& cost);
Bytes bytes_of(Payload payload, const StageCost& cost);

/// Return the part of the parameters or gradients that each replica holds; all of them without
/// ZeRO.
inline Bytes standing_parameters(const StageCost& cost) {
  return cost.parameters - cost.parameters_elsewhere;
}
inline Bytes standing_gradients(const StageCost& cost) {
  return cost.gradients - cost.gradients_elsewhere;
}
/// Returns the static memory: parameters, gradients and optimizer state.
Bytes standing(const StageCost& cost);

/// Returns the peak memory of a stage that keeps `in_flight` microbatches for their backward.
Bytes stage_memory(const StageCost& cost, int in_flight);

}  // namespace pipewright::plan
