#pragma once

// The pass that a profile and an inspection play: the whole model as one stage.

#include "pipewright/profiler/rehearsal.hpp"

namespace pipewright::profiler {

/// A microbatch whose backward runs in one go, one whose backward runs in halves, and a step of the
/// optimizer.
Rehearsal whole_model(const LayerBench& bench);

/// Without parameters all of the backward leads to the input, however the two were timed.
plan::LayerTimes typical_times(const LayerSamples& samples, bool has_parameters);

}  // namespace pipewright::profiler
