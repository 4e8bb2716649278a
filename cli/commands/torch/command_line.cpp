#include "pipewright/cli/command_line.hpp"

#include "commands/torch/torch_commands.hpp"
#include "process/program.hpp"

namespace pipewright::cli {

TorchCommands torch_commands() {
  return {.run = make_command(describe_run, run_scenario),
          .profile = make_command(describe_profile, profile_scenario),
          .train = make_command(describe_train, train_scenario),
          .save = make_command(describe_save, save_scenario),
          .generate = make_command(describe_generate, generate_tokens)};
}

int command_line(int argc, const char* const* argv) {
  return run(whole_program(torch_commands()), argc, argv);
}

}  // namespace pipewright::cli
