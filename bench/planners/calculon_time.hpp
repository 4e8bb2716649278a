#pragma once

// The time of a batch in Calculon's model.

#include <optional>

#include "planners/calculon_inputs.hpp"

namespace pipewright::planners {

/// Returns the seconds of a batch. Returns nothing if a network or a memory is too small, or if too
/// few blocks are offloaded to overlap their transfers. The pipeline's sizes must divide the
/// blocks, and the parallel sizes must divide tokens, heads and widths.
std::optional<double> calculon_seconds(const CalculonModel& model, const CalculonMachine& machine,
                                       const CalculonExecution& execution);

}  // namespace pipewright::planners
