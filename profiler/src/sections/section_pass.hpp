#pragma once

// The pass that a profile and an inspection run: a section of the model as one stage.

#include "pipewright/profiler/sections/rehearsal.hpp"
#include "pipewright/profiler/sections/sections.hpp"

namespace pipewright::profiler {

/// Returns a rehearsal of one microbatch whose backward runs in one go, one whose backward runs in
/// halves, and an optimizer step. `inputs` are the section's; the gradients of its outputs are
/// simulated.
Rehearsal section_pass(const LayerBench& bench, const Section& section,
                       const exec::Tensors& inputs);

/// Returns the index of the section's stage in that rehearsal.
int stage_of(const Section& section);

/// Returns typical times. Without parameters, all of the backward is input gradient, however the
/// two were timed.
plan::LayerTimes typical_times(const LayerSamples& samples, bool has_parameters);

}  // namespace pipewright::profiler
