#pragma once

// The commands of a program as values: what they are called, what they take and what that means.
// What reads them lies beside: parsing, completion in a shell, the manual.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace pipewright::cli {

/// Where the value of an option goes. What is not given stays as it is.
using Target =
    std::variant<bool*, int*, double*, std::string*, std::optional<int>*,
                 std::optional<std::int64_t>*, std::vector<int>*, std::vector<std::int64_t>*,
                 std::vector<double>*, std::vector<std::string>*>;

/// Which numbers an option takes.
enum class Numbers { Any, Positive, NotNegative };

struct Option {
  std::string names;  // "-o,--out"; without dashes it is known by its place
  Target target;      // of a flag: a bool
  std::string help;
  std::string value{};                     // what the help calls it: FILE, FOLDER, FIELD=VALUE
  std::vector<std::string> choices{};      // it must be one of these
  std::vector<std::string> suggestions{};  // what a shell offers beside
  Numbers numbers = Numbers::Any;
  bool required = false;
  bool shows_default = false;
  char separator = '\0';  // between the values of a list
  bool repeated = false;  // one value each time it is given
  std::vector<std::string> needs{}, excludes{};

  bool is_flag() const { return std::holds_alternative<bool*>(target); }
  bool is_positional() const { return !names.starts_with('-'); }
  /// "-o" and "--out".
  std::vector<std::string> spellings() const;
  /// Whether its value is the path of a file or a folder.
  bool takes_path() const;
};

struct Command {
  std::string name;
  std::string summary;
  std::vector<Option> options;
  std::string examples;
  /// Gives the exit code.
  std::function<int()> run{};
};

/// The options whose values are not those of `plain`, the same command untouched, by their long
/// names: what was given on the command line.
std::vector<std::string> given_options(const Command& command, const Command& plain);

/// A whole program.
struct CommandLine {
  std::string name;
  std::string summary;
  std::string version;
  std::string footer;
  std::vector<Command> commands;
};

/// A command that keeps its options: `describe` names them, `run` gets their values.
template <class Options>
Command make_command(Command (*describe)(Options&), int (*run)(const Options&)) {
  const auto options = std::make_shared<Options>();
  Command command = describe(*options);
  command.run = [options, run] { return run(*options); };
  return command;
}

}  // namespace pipewright::cli
