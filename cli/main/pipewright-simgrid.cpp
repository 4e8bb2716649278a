#include "commands/simulate_command.hpp"
#include "process/program.hpp"

int main(int argc, char** argv) {
  using namespace pipewright;
  return cli::run(cli::pipewright_with({cli::simulate_command(sim::simulate_on_simgrid)}), argc,
                  argv);
}
