#include "options/command_line/parse.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <map>

#include "exit_code.hpp"
#include "print/console.hpp"

namespace pipewright::cli {
namespace {

CLI::Option* added(CLI::App& app, const Option& option) {
  if (bool* const* const flag = std::get_if<bool*>(&option.target))
    return app.add_flag(option.names, **flag, option.help);
  return std::visit(
      [&](auto* target) { return app.add_option(option.names, *target, option.help); },
      option.target);
}

/// Returns the check with a message that says which value is valid.
CLI::Validator in_words(const CLI::Validator& check, const char* needed) {
  return {[check, needed](std::string& text) {
            return check(text).empty() ? std::string() : fmt::format("{}: {}", text, needed);
          },
          check.get_description()};
}

bool takes_fractions(const Option& option) {
  return std::holds_alternative<double*>(option.target) ||
         std::holds_alternative<std::vector<double>*>(option.target);
}

/// Rejects "inf" and "nan", which are numbers to the parser.
const CLI::Validator finite{[](std::string& text) {
                              double number = 0;
                              return CLI::detail::lexical_cast(text, number) &&
                                             !std::isfinite(number)
                                         ? fmt::format("{}: a finite number is needed", text)
                                         : std::string();
                            },
                            ""};

void restrict_values(CLI::Option& own, const Option& option) {
  if (!option.value.empty())
    own.type_name(option.value);
  if (!option.choices.empty())
    own.check(CLI::IsMember(option.choices));
  if (option.numbers == Numbers::Positive)
    own.check(in_words(CLI::PositiveNumber, "a number above 0 is needed"));
  if (option.numbers == Numbers::NotNegative)
    own.check(in_words(CLI::NonNegativeNumber, "a number of 0 or more is needed"));
  if (takes_fractions(option))
    own.check(finite);
  if (option.required)
    own.required();
  if (option.separator != '\0')
    own.delimiter(option.separator);
  if (option.repeated)
    own.allow_extra_args(false);
  if (option.shows_default)
    own.capture_default_str();
}

void add(CLI::App& program, const Command& command) {
  CLI::App& app = *program.add_subcommand(command.name, command.summary);
  app.footer(command.examples);
  std::map<std::string, CLI::Option*> known;
  for (const Option& option : command.options) {
    CLI::Option* const own = added(app, option);
    restrict_values(*own, option);
    for (const std::string& name : option.spellings())
      known[name] = own;
  }
  for (const Option& option : command.options) {
    CLI::Option* const own = known.at(option.spellings().front());
    for (const std::string& other : option.needs)
      own->needs(known.at(other));
    for (const std::string& other : option.excludes)
      own->excludes(known.at(other));
  }
}

}  // namespace

const Command* parse(const CommandLine& line, int argc, const char* const* argv, int& code) {
  CLI::App program(line.summary, line.name);
  program.require_subcommand(1);
  program.set_version_flag("--version", line.version);
  program.footer(line.footer);
  for (const Command& command : line.commands)
    add(program, command);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    code = program.exit(error) == 0 ? Done : BadInput;
    return nullptr;
  }
  const std::string name = program.get_subcommands().front()->get_name();
  for (const Command& command : line.commands)
    if (command.name == name)
      return &command;
  code = BadInput;
  return nullptr;
}

}  // namespace pipewright::cli
