#include "commands/whole_program.hpp"

#include "commands/commands.hpp"
#include "commands/shell_commands.hpp"
#include "commands/simulate_command.hpp"
#include "process/program.hpp"

namespace pipewright::cli {

CommandLine whole_program(TorchCommands torch) {
  CommandLine line = pipewright_with(
      {std::move(torch.run), std::move(torch.profile), partition_command(), schedule_command(),
       topology_command(), simulate_command(nullptr), sweep_command(), std::move(torch.train),
       std::move(torch.save), std::move(torch.generate), compare_command(), convert_command(),
       explain_command(), calibrate_command(), model_command(), plan_command(), export_command(),
       import_command()});
  for (Command& command : shell_commands(line))
    line.commands.push_back(std::move(command));
  return line;
}

}  // namespace pipewright::cli
