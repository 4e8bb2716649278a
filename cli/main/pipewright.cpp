#include "commands/commands.hpp"
#include "commands/shell_commands.hpp"
#include "commands/simulate_command.hpp"
#include "options/torch_options.hpp"
#include "process/other_programs.hpp"
#include "process/program.hpp"

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
       make_command(describe_train, hand_on<TrainOptions>),
       make_command(describe_save, hand_on<SaveOptions>), compare_command(), convert_command(),
       explain_command(), calibrate_command(), model_command(), plan_command()});
  for (Command& command : shell_commands(line))
    line.commands.push_back(std::move(command));
  return line;
}

}  // namespace
}  // namespace pipewright::cli

int main(int argc, char** argv) {
  return pipewright::cli::run(pipewright::cli::whole_program(), argc, argv);
}
