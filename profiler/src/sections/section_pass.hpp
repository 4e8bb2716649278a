#pragma once

// The pass that a profile and an inspection play: a section of the model as one stage.

#include "pipewright/profiler/sections/rehearsal.hpp"
#include "pipewright/profiler/sections/sections.hpp"

namespace pipewright::profiler {

/// A microbatch whose backward runs in one go, one whose backward runs in halves, and a step of the
/// optimizer. `inputs`: of the section; the gradients of its output are made up.
Rehearsal section_pass(const LayerBench& bench, const Section& section,
                       const exec::Tensors& inputs);

/// Which of the Rehearsal's stages it is.
int stage_of(const Section& section);

/// Without parameters all of the backward leads to the input, however the two were timed.
plan::LayerTimes typical_times(const LayerSamples& samples, bool has_parameters);

}  // namespace pipewright::profiler
