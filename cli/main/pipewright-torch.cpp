#include "commands/torch/job.hpp"
#include "commands/torch/torch_commands.hpp"
#include "process/program.hpp"

namespace {

int run_program(int argc, const char* const* argv) {
  using namespace pipewright::cli;
  auto [run_command, profile, train, save, generate] = torch_commands();  // all of them
  return run(pipewright_with({std::move(run_command), std::move(profile), std::move(train),
                              std::move(save), std::move(generate)}),
             argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  pipewright::cli::set_main_of_ranks(run_program);
  return run_program(argc, argv);
}
