#pragma once

// The costs of whole stages: layer costs summed by a partition. The simulator knows no layers.

#include <vector>

#include "pipewright/plan/layer_costs.hpp"
#include "pipewright/plan/partition.hpp"

namespace pipewright::plan {

struct StageCost {
  Seconds load;  // of one microbatch: input on the first stage, else nothing
  Seconds forward;
  Seconds input_gradient;
  Seconds weight_gradient;
  Seconds optimizer_step;
  Bytes parameters;
  Bytes gradients;
  Bytes optimizer_state;
  Bytes loaded;                // by LOAD, held until the backward has run
  Bytes activation;            // kept by the forward until the backward has run, output included
  Bytes forward_peak;          // most alive during the forward, above what was before
  Bytes backward_peak;         // most alive during the backward, above what was before
  Bytes output;                // sent to the stage after
  Bytes input_gradient_bytes;  // sent to the stage before; held until its backward has run
};

/// AdamW keeps two moments, each as large as the parameters.
inline constexpr int adamw_states = 2;

/// The loss belongs to the last stage. Throws InputError when the partition has another number of
/// layers than the costs.
std::vector<StageCost> stage_costs(const LayerCosts& costs, const Partition& partition);

/// The most that a stage needs while it keeps `in_flight` microbatches for their backward.
Bytes stage_memory(const StageCost& cost, int in_flight);

}  // namespace pipewright::plan
