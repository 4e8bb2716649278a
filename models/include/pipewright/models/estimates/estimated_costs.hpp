#pragma once

// Layer costs that nobody measured: from the model's FLOPs and shapes and the device's peak. They
// show how a plan behaves; how long it takes they only guess.

#include <string>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::models {

/// What is taken for a device that says nothing of itself.
inline constexpr double assumed_flops_per_s = 1e12;
inline constexpr double assumed_memory_bandwidth_per_s = 1e11;
/// The part of its peak that a device reaches.
inline constexpr double assumed_efficiency = 0.4;

/// For the scenario's microbatch size. A layer takes the longer of its FLOPs at
/// `assumed_efficiency` of the peak and its bytes at the memory's bandwidth; each half of its
/// backward takes as long as the forward. It keeps what its backward needs by its shapes
/// (transformer blocks: Korthikanti et al., 2205.05198, section 4.1). `software` is "estimated".
/// Transformers in sizes have the costs of `plan::transformer_costs`; of those that a folder has,
/// memory is what the executor's own layers hold (`plan::executor_layers`).
plan::LayerCosts estimated_costs(const plan::Scenario& scenario);

/// Whether they follow from the sizes of the scenario's model alone, and are what is planned with.
bool has_analytic_costs(const plan::Scenario& scenario);

bool is_estimated(const plan::LayerCosts& costs);

/// A sentence that says what the estimate stands on.
std::string estimate_note(const plan::Scenario& scenario);

}  // namespace pipewright::models
