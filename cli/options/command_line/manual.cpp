#include "options/command_line/manual.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

namespace pipewright::cli {
namespace {

/// Escapes text so that troff prints it literally, also at the beginning of a line.
std::string literal(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else if ((c == '.' || c == '\'') && (escaped.empty() || escaped.back() == '\n'))
      escaped += std::string("\\&") + c;
    else
      escaped += c;
  }
  return escaped;
}

std::string heading(const Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.spellings())
    names.push_back("\\fB" + literal(option.is_positional() ? option.value : name) + "\\fR");
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (option.is_flag() || option.is_positional())
    return text;
  const std::string value = !option.choices.empty()
                                ? fmt::format("{}", fmt::join(option.choices, "|"))
                                : (option.value.empty() ? "VALUE" : option.value);
  return text + " \\fI" + literal(value) + "\\fR";
}

std::string section(const Command& command) {
  std::string text = fmt::format(".SS {}\n{}.\n", literal(command.name), literal(command.summary));
  for (const Option& option : command.options)
    text += fmt::format(".TP\n{}\n{}.\n", heading(option), literal(option.help));
  return text;
}

}  // namespace

std::string manual_page(const CommandLine& line) {
  std::string text = fmt::format(
      ".TH {0} 1 \"\" \"{0} {1}\" \"User Commands\"\n.SH NAME\n{0} \\- {2}\n"
      ".SH SYNOPSIS\n.B {0}\n.I COMMAND\n[\\fIOPTION\\fR]...\n.SH COMMANDS\n",
      line.name, literal(line.version), literal(line.summary));
  for (const Command& command : line.commands)
    text += section(command);
  text += ".SH EXAMPLES\n.nf\n";
  for (const Command& command : line.commands) {
    std::istringstream lines(command.examples);
    for (std::string example; std::getline(lines, example);)
      if (const auto at = example.find_first_not_of(' '); at != std::string::npos) {
        const auto begin = example.find(": ") == std::string::npos ? at : example.find(": ") + 2;
        text += literal(example.substr(begin)) + "\n";
      }
  }
  return text + ".fi\n.SH EXIT STATUS\n" + literal(line.footer) + "\n";
}

}  // namespace pipewright::cli
