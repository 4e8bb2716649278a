#pragma once

// Memory that persists on a rank from step to step: parameters, gradients, optimizer state, and
// what libraries and Megatron allocate once and keep.

#include "pipewright/models/megatron/megatron_memory.hpp"
#include "rank_parameters.hpp"
#include "rank_stages.hpp"

namespace pipewright::models::megatron {

/// Adds the parameters and their gradient buffer.
void add_model(MemoryByName& held, const MegatronRun& run, const Parameters& parameters);
/// Returns the bytes of fp32 master weights, which exist from the beginning.
long long main_weights(const MegatronRun& run, const Parameters& parameters);
/// Returns the bytes of momentum and variance, which the first step allocates.
long long optimizer_state(const MegatronRun& run, const Parameters& parameters);
/// Returns the bytes of fp32 copies of 16-bit gradients, which are made for the step.
long long wide_gradients(const MegatronRun& run, const Parameters& parameters);
/// Adds workspaces, placeholder gradients, buffers, cast weights, and excess bytes of unsplit
/// blocks.
void add_set_aside(MemoryByName& held, const MegatronRun& run, const std::vector<RankStage>& stages,
                   const Parameters& parameters);
/// Returns the bytes of each stage's input and its gradient, which stay until the next
/// microbatch's.
long long stage_inputs(const MegatronRun& run, const std::vector<RankStage>& stages);

}  // namespace pipewright::models::megatron
