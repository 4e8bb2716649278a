#pragma once

// Conversion of a measured run with Megatron-LM's options into a run whose memory can be computed.

#include "pipewright/models/measured/measured_run.hpp"
#include "pipewright/models/megatron/megatron_run.hpp"

namespace pipewright::models {

/// Returns true if a row names Megatron's implementation. Only then is everything known that its
/// memory depends on.
bool tells_megatron(const MeasuredRun& run);

/// Returns the run of its pipeline's last rank. Throws InputError that names a setting that is not
/// supported, and its column.
MegatronRun megatron_run_of(const MeasuredRun& run);

/// Returns why an argument of the run leaves the sizes of its layers unknown: "--option: reason".
/// Returns an empty text if none does.
std::string refused_argument(const MeasuredRun& run);

/// Returns the layers given by --hybrid-layer-pattern and related options, or by the ratios of
/// layer kinds: M Mamba, * attention, - feed-forward, E experts; | between stages, / before further
/// predictions. Empty if no option gives them.
std::string hybrid_pattern(const std::string& arguments, int layers);

}  // namespace pipewright::models
