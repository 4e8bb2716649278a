#pragma once

// Parses the value of --costs: the costs of a schedule's actions.

#include <string>

#include "pipewright/plan/costs/schedule_costs.hpp"

namespace pipewright::cli {

/// Parses "1,1,1", "1,1,1,0.5" or, with a time for every stage, "1/2,1/2,1/1,0.5": forward, input
/// gradient, weight gradient and transfer. Throws InputError that names the part.
plan::ScheduleCosts parse_costs(const std::string& text);

}  // namespace pipewright::cli
