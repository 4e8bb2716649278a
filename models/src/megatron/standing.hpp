#pragma once

// What stands on a rank from step to step: parameters, gradients, optimizer, and what libraries and
// Megatron set aside once and keep.

#include "pipewright/models/megatron/megatron_memory.hpp"
#include "rank_parameters.hpp"
#include "rank_stages.hpp"

namespace pipewright::models::megatron {

/// Parameters and the buffer of their gradients.
void add_model(Holdings& held, const MegatronRun& run, const Parameters& parameters);
/// fp32 weights, which stand from the beginning.
long long main_weights(const MegatronRun& run, const Parameters& parameters);
/// Momentum and variance, which the first step makes.
long long optimizer_state(const MegatronRun& run, const Parameters& parameters);
/// fp32 copies of 16-bit gradients, made for the step.
long long wide_gradients(const MegatronRun& run, const Parameters& parameters);
/// Workspaces, stand-ins, buffers, casts of weights, and what blocks have too much.
void add_set_aside(Holdings& held, const MegatronRun& run, const std::vector<RankStage>& stages,
                   const Parameters& parameters);
/// The input of each stage and its gradient, which stay until the next microbatch's.
long long stage_inputs(const MegatronRun& run, const std::vector<RankStage>& stages);

}  // namespace pipewright::models::megatron
