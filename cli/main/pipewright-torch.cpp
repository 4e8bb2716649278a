#include "commands/torch/torch_commands.hpp"
#include "process/program.hpp"

int main(int argc, char** argv) {
  using namespace pipewright::cli;
  TorchCommands commands = torch_commands();
  return run(pipewright_with({std::move(commands.run), std::move(commands.profile),
                              std::move(commands.train), std::move(commands.save)}),
             argc, argv);
}
