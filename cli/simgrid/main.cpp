#include "program.hpp"
#include "simulate_command.hpp"

int main(int argc, char** argv) {
  using namespace pipewright;
  return cli::run(cli::pipewright_with({cli::simulate_command(sim::simulate_on_simgrid)}), argc,
                  argv);
}
