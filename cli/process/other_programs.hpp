#pragma once

// The programs beside this one. Loading LibTorch takes 0.4 s and 150 MB, loading SimGrid 30 ms and
// 20 MB; a command that needs neither does not pay for them.

#include <string>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::cli {

/// This process becomes pipewright-torch or pipewright-simgrid, with the words that it was started
/// with. They throw InputError where that was not built or installed.
int become_torch_program();
int become_simgrid_program();

/// Costs from `file`; where it is empty those that follow from the sizes of a transformer, and of
/// what is trained here pipewright-torch measures them now. Throws ProgramFailed,
/// and loop::Stopped when the user asked to stop.
plan::LayerCosts costs_for(const plan::Scenario& scenario, const std::string& file);

}  // namespace pipewright::cli
