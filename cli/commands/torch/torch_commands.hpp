#pragma once

// The commands that need LibTorch. Each returns the exit code.

#include "commands/whole_program.hpp"
#include "options/torch_options.hpp"

namespace pipewright::cli {

int run_scenario(const RunOptions& options);
int profile_scenario(const ProfileOptions& options);
int profile_links(const ProfileOptions& options);  // the same command with --links
int train_scenario(const TrainOptions& options);
int save_scenario(const SaveOptions& options);
int generate_tokens(const GenerateOptions& options);

/// Returns the commands with these implementations.
TorchCommands torch_commands();

}  // namespace pipewright::cli
