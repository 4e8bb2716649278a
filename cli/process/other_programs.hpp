#pragma once

// Starts the other programs. Loading LibTorch takes 0.4 s and 150 MB, loading SimGrid 30 ms and 20
// MB; a command that needs neither avoids this.

#include <string>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::cli {

/// Replace this process with pipewright-torch or pipewright-simgrid, with the same arguments. They
/// throw InputError if that was not built or installed.
int become_torch_program();
int become_simgrid_program();

/// Returns the costs in `file`. Without a file, costs of transformers are estimated from their
/// sizes, and those of models trained here are measured now by pipewright-torch. Throws
/// ProgramFailed, and plan::Stopped if the user requested a stop.
plan::LayerCosts costs_for(const plan::Scenario& scenario, const std::string& file);

}  // namespace pipewright::cli
