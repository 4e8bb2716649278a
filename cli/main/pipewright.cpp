#include "commands/whole_program.hpp"
#include "options/torch_options.hpp"
#include "process/other_programs.hpp"
#include "process/program.hpp"

namespace pipewright::cli {
namespace {

template <class Options>
int hand_on(const Options&) {
  return become_torch_program();
}

}  // namespace
}  // namespace pipewright::cli

int main(int argc, char** argv) {
  using namespace pipewright::cli;
  return run(whole_program({.run = make_command(describe_run, hand_on<RunOptions>),
                            .profile = make_command(describe_profile, hand_on<ProfileOptions>),
                            .train = make_command(describe_train, hand_on<TrainOptions>),
                            .save = make_command(describe_save, hand_on<SaveOptions>),
                            .generate = make_command(describe_generate, hand_on<GenerateOptions>)}),
             argc, argv);
}
