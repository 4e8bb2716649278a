#include "commands/shell_commands.hpp"

#include <memory>

#include "exit_code.hpp"
#include "options/command_line/completion.hpp"
#include "options/command_line/manual.hpp"
#include "print/console.hpp"

namespace pipewright::cli {
namespace {

/// The program's command line including the commands that describe it, whose `run` is unset here.
struct Described {
  CommandLine line;
  std::string shell;
};

Command completion_command(std::string& shell) {
  return {
      .name = "completion",
      .summary = "Print the script that completes this program's commands and options in a shell",
      .options = {{.names = "shell",
                   .target = &shell,
                   .help = "bash, zsh or fish",
                   .value = "SHELL",
                   .choices = {"bash", "zsh", "fish"},
                   .required = true}},
      .examples = "Example: source <(pipewright completion bash)"};
}

Command manual_command() {
  return {.name = "manual",
          .summary = "Print the manual page of this program",
          .options = {},
          .examples = "Example: pipewright manual | man -l -"};
}

std::string completion(const Described& described) {
  if (described.shell == "zsh")
    return zsh_completion(described.line);
  return described.shell == "fish" ? fish_completion(described.line)
                                   : bash_completion(described.line);
}

}  // namespace

std::vector<Command> shell_commands(const CommandLine& line) {
  const auto described = std::make_shared<Described>(Described{line, {}});
  described->line.commands.push_back(completion_command(described->shell));
  described->line.commands.push_back(manual_command());
  std::vector<Command> commands{completion_command(described->shell), manual_command()};
  commands[0].run = [described] {
    fmt::print("{}", completion(*described));
    return static_cast<int>(Done);
  };
  commands[1].run = [described] {
    fmt::print("{}", manual_page(described->line));
    return static_cast<int>(Done);
  };
  return commands;
}

}  // namespace pipewright::cli
