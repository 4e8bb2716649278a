#include "process/program.hpp"

#include "exit_code.hpp"
#include "options/command_line/parse.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/stopped.hpp"
#include "print/console.hpp"
#include "process/interrupt.hpp"

namespace pipewright::cli {

CommandLine pipewright_with(std::vector<Command> commands) {
  return {.name = "pipewright",
          .summary = "Plans, predicts and runs pipeline-parallel training.",
          .version = PIPEWRIGHT_VERSION,
          .footer =
              "Exit codes: 0 done, 1 a negative answer or failed work, 2 bad usage or input, 130 "
              "interrupted.",
          .commands = std::move(commands)};
}

int run(const CommandLine& line, int argc, const char* const* argv) {
  int code = Done;
  const Command* const command = parse(line, argc, argv, code);
  if (command == nullptr)
    return code;
  try {
    return command->run();
  } catch (const plan::InputError& error) {
    say(error.what());
    return BadInput;
  } catch (const plan::Stopped&) {
    say("interrupted");
    return Interrupted;
  } catch (const ProgramFailed& failed) {
    return failed.exit_code;
  } catch (const std::exception& failure) {
    say(failure.what());
    return NegativeAnswer;
  }
}

}  // namespace pipewright::cli
