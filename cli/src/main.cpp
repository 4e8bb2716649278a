#include "commands.hpp"
#include "console.hpp"
#include "pipewright/exec/executor.hpp"
#include "pipewright/plan/error.hpp"
#include "planning.hpp"
#include "workload.hpp"

namespace pipewright::cli {
namespace {

/// Runs the chosen command; every way to fail has its exit code here and nowhere else.
int guarded(const Action& action) {
  try {
    return action();
  } catch (const plan::InputError& error) {
    say(error.what());
    return BadInput;
  } catch (const Stopped&) {
    say("interrupted");
    return Interrupted;
  } catch (const plan::Infeasible& answer) {
    say(answer.what());
    return NegativeAnswer;
  } catch (const std::exception& failure) {
    say(failure.what());
    return NegativeAnswer;
  }
}

int main(int argc, char** argv) {
  CLI::App program("Plans, predicts and runs pipeline-parallel training.", "pipewright");
  program.require_subcommand(1);
  program.set_version_flag("--version", PIPEWRIGHT_VERSION);
  program.footer(
      "Exit codes: 0 done, 1 a negative answer or failed work, 2 bad usage or input, "
      "130 interrupted.");
  std::vector<Action> actions{add_run(program),      add_profile(program),  add_partition(program),
                              add_schedule(program), add_topology(program), add_simulate(program),
                              add_sweep(program),    add_train(program),    add_compare(program)};
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? Done : BadInput;
  }
  const auto commands = program.get_subcommands({});
  for (std::size_t i = 0; i < commands.size(); ++i)
    if (commands[i]->parsed())
      return guarded(actions[i]);
  return BadInput;
}

}  // namespace
}  // namespace pipewright::cli

int main(int argc, char** argv) { return pipewright::cli::main(argc, argv); }
