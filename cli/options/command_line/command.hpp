#pragma once

// The commands of a program as values: their names, options and descriptions. Parsing, shell
// completion and the manual read them in other files.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace pipewright::cli {

/// The variable that receives the value of an option. It is unchanged if the option is not given.
using Target =
    std::variant<bool*, int*, double*, std::string*, std::optional<int>*,
                 std::optional<std::int64_t>*, std::vector<int>*, std::vector<std::int64_t>*,
                 std::vector<double>*, std::vector<std::string>*>;

/// The numbers that an option accepts.
enum class Numbers { Any, Positive, NotNegative };

struct Option {
  std::string names;  // "-o,--out"; without dashes it is positional
  Target target;      // a bool makes it a flag
  std::string help;
  std::string value{};                     // the name of the value in the help: FILE, FOLDER,
                                           // FIELD=VALUE
  std::vector<std::string> choices{};      // the only valid values
  std::vector<std::string> suggestions{};  // additional values offered by shell completion
  Numbers numbers = Numbers::Any;
  bool required = false;
  bool shows_default = false;
  char separator = '\0';  // between the values of a list
  bool repeated = false;  // one value each time it is given
  std::vector<std::string> needs{}, excludes{};

  bool is_flag() const { return std::holds_alternative<bool*>(target); }
  bool is_positional() const { return !names.starts_with('-'); }
  /// Returns "-o" and "--out".
  std::vector<std::string> spellings() const;
  /// Returns true if its value is the path of a file or a folder.
  bool takes_path() const;
};

struct Command {
  std::string name;
  std::string summary;
  std::vector<Option> options;
  std::string examples;
  /// Runs the command and returns the exit code.
  std::function<int()> run{};
};

/// Returns the long names of the options that were given on the command line: those whose values
/// differ from `plain`, the same command with its defaults.
std::vector<std::string> given_options(const Command& command, const Command& plain);

/// The command line of a whole program.
struct CommandLine {
  std::string name;
  std::string summary;
  std::string version;
  std::string footer;
  std::vector<Command> commands;
};

/// Makes a command that owns its options: `describe` declares them, `run` receives their values.
template <class Options>
Command make_command(Command (*describe)(Options&), int (*run)(const Options&)) {
  const auto options = std::make_shared<Options>();
  Command command = describe(*options);
  command.run = [options, run] { return run(*options); };
  return command;
}

}  // namespace pipewright::cli
