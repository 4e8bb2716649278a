#pragma once

// What Calculon says a batch takes.

#include <optional>

#include "planners/calculon_inputs.hpp"

namespace pipewright::planners {

/// Seconds of a batch; nothing where a network or a memory is too small, or where so few blocks are
/// offloaded that none can be on its way. The pipeline's sizes must divide the blocks, and what
/// divides tokens, heads and widths must divide them.
std::optional<double> calculon_seconds(const CalculonModel& model, const CalculonMachine& machine,
                                       const CalculonExecution& execution);

}  // namespace pipewright::planners
