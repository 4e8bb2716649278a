#pragma once

// `pipewright simulate`, on either engine.

#include "options/command_line/command.hpp"
#include "pipewright/sim/simgrid/simgrid.hpp"

namespace pipewright::cli {

/// `simgrid`: the second engine. Null: it is in a program of its own, which this one becomes where
/// it is asked for.
Command simulate_command(decltype(&sim::simulate_on_simgrid) simgrid);

}  // namespace pipewright::cli
