#pragma once

// A measured run in Megatron-LM's words as a run whose memory can be accounted for.

#include "pipewright/models/measured/measured_run.hpp"
#include "pipewright/models/megatron/megatron_run.hpp"

namespace pipewright::models {

/// Whether a row says which of Megatron's implementations trained: only then all that its memory
/// follows from is told.
bool tells_megatron(const MeasuredRun& run);

/// The last rank of its pipeline. Throws InputError: what the run says that nobody has counted, and
/// in which column.
MegatronRun megatron_run_of(const MeasuredRun& run);

/// The layers that --hybrid-layer-pattern and its like tell, or the shares of kinds: M Mamba, *
/// attention, - feed-forward, E experts; | between stages, / before further predictions. Empty:
/// none do.
std::string hybrid_pattern(const std::string& arguments, int layers);

}  // namespace pipewright::models
