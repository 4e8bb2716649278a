#include "commands/torch/torch_commands.hpp"
#include "process/program.hpp"

int main(int argc, char** argv) {
  using namespace pipewright::cli;
  return run(pipewright_with({make_command(describe_run, run_scenario),
                              make_command(describe_profile, profile_scenario),
                              make_command(describe_train, train_scenario),
                              make_command(describe_save, save_scenario)}),
             argc, argv);
}
