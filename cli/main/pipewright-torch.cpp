#include "commands/torch/torch_commands.hpp"
#include "process/program.hpp"

int main(int argc, char** argv) {
  using namespace pipewright::cli;
  auto [run_command, profile, train, save, generate] = torch_commands();  // all of them
  return run(pipewright_with({std::move(run_command), std::move(profile), std::move(train),
                              std::move(save), std::move(generate)}),
             argc, argv);
}
