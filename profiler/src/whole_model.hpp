#pragma once

#include "pipewright/profiler/rehearsal.hpp"

namespace pipewright::profiler {

/// The whole model as one stage: a microbatch whose backward runs in one go, a step of the
/// optimizer, and a microbatch whose backward runs in halves.
Rehearsal whole_model(const LayerBench& bench);

/// Without parameters all of the backward leads to the input, however the two were timed.
plan::LayerTimes typical_times(const LayerSamples& samples, bool has_parameters);

}  // namespace pipewright::profiler
