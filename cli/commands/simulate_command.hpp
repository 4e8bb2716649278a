#pragma once

// `pipewright simulate`, on either engine.

#include "options/command_line/command.hpp"
#include "pipewright/sim/simgrid/simgrid.hpp"

namespace pipewright::cli {

/// Returns the command. `simgrid` is the second engine; null: it is in a separate program, which
/// this process becomes if it is requested.
Command simulate_command(decltype(&sim::simulate_on_simgrid) simgrid);

}  // namespace pipewright::cli
