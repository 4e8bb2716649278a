#pragma once

// The costs of whole stages: layer costs summed by a partition. The simulator knows no layers.

#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/costs/schedule_costs.hpp"
#include "pipewright/plan/costs/training_memory.hpp"
#include "pipewright/plan/partition/partition.hpp"

namespace pipewright::plan {

/// The costs that differ where a microbatch's forward runs again (a Recompute in the Program).
struct RerunCost {
  Seconds first{};       // R: the last of the layers that run again at a time
  Seconds others{};      // within the backward: the layers before
  Bytes kept{};          // the forward keeps it until the backward has run, beside the output
  Bytes forward_peak{};  // most alive during the forward, above what was before
  Bytes remade{};        // R makes it again for the backward, the output included
  Bytes freed_by_input_gradient{};  // the part of `remade` that goes with the input gradient
  Bytes rerun_peak{};               // most alive during R, above what was before
  Bytes backward_peak{};            // most alive during the backward, above what R has left
  Bytes backward_peak_apart{};      // the same where gradients of parameters are made apart
  Bytes input_gradient_peak{};      // the same during a lone input gradient
  // What a lone input gradient ran again and leaves to the weight gradient.
  Bytes left_for_weights{};
  // After how much of the backward, or of a part of it, the last layer has been run through, and
  // the gradient that came from the stage after is done with.
  double backward_share = 1;
  double input_gradient_share = 1;
  double weight_gradient_share = 1;
  friend bool operator==(const RerunCost&, const RerunCost&) = default;
};

struct StageCost : PassTimes {
  Seconds load;  // for the input of one microbatch on the first stage, its targets on the last
  Seconds optimizer_step;
  Bytes parameters;
  Bytes gradients;
  // Of these, what other copies of the stage hold in its place.
  Bytes parameters_elsewhere{}, gradients_elsewhere{};
  double whole_at_once = 1;  // the part of both that is there while the stage computes
  Bytes optimizer_state;
  Bytes sent_gradients{};           // to the copies, in the parameters' type; 0: `gradients`
  Bytes pipeline_gradients{};       // the part of the gradients that is of other pipelines' tokens
  Bytes expert_parameters{};        // the part of the parameters that fewer copies have
  Bytes workspace{};                // that its rank has throughout, the most of its stages
  Bytes loaded;                     // LOAD brings it, and it is held until the backward has run
  Bytes activation;                 // the forward keeps it for the backward, output included
  Bytes forward_peak;               // most alive during the forward, above what was before
  Bytes backward_peak;              // most alive during the backward, above what was before
  Bytes output;                     // sent to the stage after
  Bytes output_alone{};             // the output's part of the activation, where no layer saves it
  Bytes input_gradient_bytes;       // sent to the stage before; held until its backward has run
  Bytes tied{};                     // the gradients of a weight that other stages share
  Bytes freed_by_input_gradient{};  // the part of the activation that goes with the input gradient;
                                    // the rest goes with the weight gradient
  Bytes input_gradient_peak{};      // most alive during I, above what was before
  Bytes weight_gradient_peak{};     // the same during W
  // The same where the gradients of parameters are made apart, and stay.
  Bytes backward_peak_apart{};
  Bytes weight_gradient_peak_apart{};
  Bytes gradients_for_weights{};   // left by the input gradient to the weight gradient, less the
                                   // output's gradient, which the stage after has made
  bool input_for_weights = false;  // W needs the stage's input
  bool output_gradient_for_weights = false;  // W needs the gradient of its output
  Seconds shards{}, backward_shards{};       // of the forward and the input gradient: as of a layer
  Seconds splitting{};  // how much longer the backward takes in two parts than in one go
  RerunCost rerun{};
};

/// The loss belongs to the last stage. Layers with `tied` bytes share one weight: a stage that has
/// several of them holds it once. Throws InputError when the partition has another number of layers
/// than the costs.
///
/// With n parameters in a stage, the optimizer keeps s = 2 (AdamW), 1 (SGD with momentum) or 0
/// (SGD) values for each:
///
///   precision  parameters  gradients  optimizer state
///   full       d n         d n        s d n             d: bytes of the measured type
///   mixed      2 n         2 n        4 n + s 4 n       (Rajbhandari et al., ZeRO,
///   1910.02054, 3.1)
///              with `fp32_gradients` 4 n
///
/// Activations and times are those that were measured. Among `shards` replicas, each holds and
/// steps its part of the optimizer state, rounded up (ZeRO stage 1), and from stage 2 on its part
/// of the gradients, under stage 3 of the parameters. Recomputation changes each layer but the
/// loss:
///
///   full       keeps its input alone; its backward begins with its forward and needs memory for
///              those activations as well
///   selective  keeps `selective_activation` less; its backward begins with `selective_forward`
///              (Korthikanti et al., 2205.05198)
///
/// Where microbatches are read ahead, a LOAD takes `wait_for_read`; with `reads_on_rank` as long as
/// reading, which takes the rank's time then or earlier.
std::vector<StageCost> stage_costs(const LayerCosts& costs, const Partition& partition,
                                   const TrainingMemory& training = {});

/// Between two LOADs of a stage lies at least its compute for a microbatch, forward and backward,
/// and beside that the next one is read: what reading takes longer.
Seconds wait_for_read(Seconds read, const StageCost& cost);

/// Where the whole stage runs again at once.
RerunCost rerun_at_once(const StageCost& cost);

/// The backward in one go.
Seconds backward_time(const StageCost& cost);

/// What an instruction of the stage takes, and what it moves. A Rerun is that of the layers that R
/// runs again.
Seconds time_of(Work work, const StageCost& cost);
Bytes bytes_of(Payload payload, const StageCost& cost);

/// Its part of the parameters or gradients, where copies of the stage divide them; else all.
inline Bytes standing_parameters(const StageCost& cost) {
  return cost.parameters - cost.parameters_elsewhere;
}
inline Bytes standing_gradients(const StageCost& cost) {
  return cost.gradients - cost.gradients_elsewhere;
}
/// What stands throughout: parameters, gradients and optimizer state.
Bytes standing(const StageCost& cost);

/// The most that a stage needs while it keeps `in_flight` microbatches for their backward.
Bytes stage_memory(const StageCost& cost, int in_flight);

}  // namespace pipewright::plan
