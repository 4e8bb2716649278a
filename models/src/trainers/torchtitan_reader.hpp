#pragma once

// The cut that a torchtitan configuration describes, whether it lists the stages or leaves them to
// torchtitan.

#include <string>
#include <vector>

#include "pipewright/models/trainers/cut_context.hpp"
#include "trainers/given_fields.hpp"
#include "trainers/torchtitan_fields.hpp"

namespace pipewright::models {

/// Returns the cut of a configuration as assignments to a scenario's fields. Stages that it does
/// not list are cut as torchtitan cuts them. Throws InputError that lists all faults.
std::vector<std::string> torchtitan_assignments(GivenFields given, TorchtitanVersion version,
                                                const CutContext& context);

}  // namespace pipewright::models
