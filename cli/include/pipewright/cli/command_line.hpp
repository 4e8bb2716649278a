#pragma once

// All of pipewright's commands for a program that declares additional models
// (pipewright/loop_torch/custom_model.hpp).

namespace pipewright::cli {

/// Runs the arguments of `main` as `pipewright` does and returns the exit code: run, profile,
/// partition, simulate, train and the rest, each with its --help. `train --processes` starts the
/// same program again.
int command_line(int argc, const char* const* argv);

}  // namespace pipewright::cli
