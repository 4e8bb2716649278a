#pragma once

// All of pipewright's commands in a program of one's own, with the models that it declares
// (pipewright/loop_torch/own_model.hpp) beside those that are known.

namespace pipewright::cli {

/// Does what the words of `main` ask for, as `pipewright` does, and gives the exit code: run,
/// profile, partition, simulate, train and the rest, each with its --help. `train --processes`
/// starts the same program again.
int command_line(int argc, const char* const* argv);

}  // namespace pipewright::cli
