#include "commands.hpp"
#include "other_programs.hpp"
#include "program.hpp"
#include "shell_commands.hpp"
#include "simulate_command.hpp"
#include "torch_options.hpp"

namespace pipewright::cli {
namespace {

template <class Options>
int hand_on(const Options&) {
  return become_torch_program();
}

/// All commands, in the order of the help.
CommandLine whole_program() {
  CommandLine line = pipewright_with(
      {make_command(describe_run, hand_on<RunOptions>),
       make_command(describe_profile, hand_on<ProfileOptions>), partition_command(),
       schedule_command(), topology_command(), simulate_command(nullptr), sweep_command(),
       make_command(describe_train, hand_on<TrainOptions>), compare_command()});
  for (Command& command : shell_commands(line))
    line.commands.push_back(std::move(command));
  return line;
}

}  // namespace
}  // namespace pipewright::cli

int main(int argc, char** argv) {
  return pipewright::cli::run(pipewright::cli::whole_program(), argc, argv);
}
