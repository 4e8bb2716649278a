#pragma once

// Estimated layer costs, without measurements: from the model's FLOPs and shapes and the device's
// peak. They show how a plan behaves, but only roughly how long it takes.

#include <string>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::models {

/// Values assumed for a device whose figures are not given.
inline constexpr double assumed_flops_per_s = 1e12;
inline constexpr double assumed_memory_bandwidth_per_s = 1e11;
/// The fraction of its peak that a device is assumed to reach.
inline constexpr double assumed_efficiency = 0.4;

/// Returns costs for the scenario's microbatch size. A layer takes the longer of two times: its
/// FLOPs at `assumed_efficiency` of the peak, and its bytes at the memory bandwidth. Each half of
/// its backward takes as long as the forward. Its saved activations follow from its shapes
/// (transformer blocks: Korthikanti et al., 2205.05198, section 4.1). `software` is "estimated".
/// Transformers given by sizes have the costs of `transformer_costs`. For those given by a folder,
/// memory is that of the executor's own layers (`plan::executor_layers`).
plan::LayerCosts estimated_costs(const plan::Scenario& scenario);

/// Returns true if the costs follow from the sizes of the scenario's model alone, and planning uses
/// them.
bool has_analytic_costs(const plan::Scenario& scenario);

bool is_estimated(const plan::LayerCosts& costs);

/// Returns a sentence that names the basis of the estimate.
std::string estimate_note(const plan::Scenario& scenario);

}  // namespace pipewright::models
