#include "options/command_line/completion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pipewright::cli {
namespace {

/// Quotes any text as one word of a shell.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char c : text)
    word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::vector<std::string> words_of(const Option& option) {
  std::vector<std::string> words = option.choices;
  words.insert(words.end(), option.suggestions.begin(), option.suggestions.end());
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

// ---- bash
// ----------------------------------------------------------------------------------------

std::string bash_words(const std::string& words) {
  return fmt::format("mapfile -t COMPREPLY < <(compgen -W {} -- \"$word\")", quoted(words));
}

/// Returns the completion of an option's value.
std::string bash_values(const Option& option) {
  const auto words = words_of(option);
  if (!words.empty())
    return bash_words(joined(words)) + (words.front().ends_with('=') ? "; compopt -o nospace" : "");
  if (option.takes_path())
    return "compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- \"$word\")";
  return ":";
}

std::string bash_command(const Command& command) {
  std::string values, positional = "    :\n";
  std::vector<std::string> names{"--help"};
  for (const Option& option : command.options) {
    if (option.is_positional()) {
      positional = fmt::format("    {}\n", bash_values(option));
      continue;
    }
    const auto spellings = option.spellings();
    names.insert(names.end(), spellings.begin(), spellings.end());
    if (!option.is_flag())
      values += fmt::format("        {}) {}; return ;;\n", fmt::join(spellings, " | "),
                            bash_values(option));
  }
  return fmt::format(
      "    {})\n      case $before in\n{}        *) ;;\n      esac\n"
      "      if [[ $word == -* ]]; then {}; return; fi\n  {}      ;;\n",
      command.name, values, bash_words(joined(names)), positional);
}

// ---- zsh
// -----------------------------------------------------------------------------------------

/// Escapes text inside the brackets or between the colons of a specification of _arguments.
std::string zsh_text(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\')
      escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string zsh_values(const Option& option) {
  const auto words = words_of(option);
  const std::string what = option.value.empty() ? "value" : option.value;
  if (!words.empty() && words.front().ends_with('='))
    return fmt::format(":{}:compadd -S \"\" -- {}", zsh_text(what), joined(words));
  if (!words.empty())
    return fmt::format(":{}:({})", zsh_text(what), joined(words));
  return fmt::format(":{}:{}", zsh_text(what), option.takes_path() ? "_files" : "");
}

std::string zsh_command(const Command& command) {
  std::string text = fmt::format("    {})\n      _arguments", command.name);
  for (const Option& option : command.options) {
    const std::string values = option.is_flag() ? "" : zsh_values(option);
    if (option.is_positional()) {
      text += " \\\n        " + quoted(values);
      continue;
    }
    for (const std::string& name : option.spellings())
      text += " \\\n        " + quoted(fmt::format("{}{}[{}]{}", option.repeated ? "*" : "", name,
                                                   zsh_text(option.help), values));
  }
  return text + "\n      ;;\n";
}

// ---- fish
// ----------------------------------------------------------------------------------------

std::string fish_option(const Command& command, const Option& option) {
  std::string text =
      fmt::format("complete -c pipewright -n '__fish_seen_subcommand_from {}'", command.name);
  for (const std::string& name : option.spellings())
    if (name.starts_with("--"))
      text += " -l " + name.substr(2);
    else if (name.starts_with('-'))
      text += " -s " + name.substr(1);
  const auto words = words_of(option);
  if (!option.is_flag() && option.takes_path())
    text += option.is_positional() ? " -F" : " -r -F";
  else if (!option.is_flag() && !option.is_positional())
    text += " -x";
  if (!words.empty())
    text += " -a " + quoted(joined(words));
  return text + " -d " + quoted(option.help) + "\n";
}

}  // namespace

std::string bash_completion(const CommandLine& line) {
  std::vector<std::string> names{"--help", "--version"};
  std::string cases;
  for (const Command& command : line.commands) {
    names.push_back(command.name);
    cases += bash_command(command);
  }
  return fmt::format(
      "_pipewright() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then {}; return; fi\n"
      "  case ${{COMP_WORDS[1]}} in\n{}    *) ;;\n  esac\n}}\n"
      "complete -F _pipewright pipewright\n",
      bash_words(joined(names)), cases);
}

std::string zsh_completion(const CommandLine& line) {
  std::string commands, cases;
  for (const Command& command : line.commands) {
    commands += "\n    " + quoted(command.name + ":" + zsh_text(command.summary));
    cases += zsh_command(command);
  }
  return fmt::format(
      "#compdef pipewright\n\n"
      "_pipewright() {{\n"
      "  local -a commands=({}\n  )\n"
      "  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n"
      "  shift words\n  ((CURRENT--))\n"
      "  case $words[1] in\n{}  esac\n}}\n\n_pipewright \"$@\"\n",
      commands, cases);
}

std::string fish_completion(const CommandLine& line) {
  std::string text = "complete -c pipewright -f\n";
  for (const Command& command : line.commands) {
    text += fmt::format("complete -c pipewright -n __fish_use_subcommand -a {} -d {}\n",
                        command.name, quoted(command.summary));
    for (const Option& option : command.options)
      text += fish_option(command, option);
  }
  return text;
}

}  // namespace pipewright::cli
