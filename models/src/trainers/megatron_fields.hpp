#pragma once

// Access to Megatron's arguments by name, from a script or a YAML file. It collects faults with
// line and column, and tracks which options were never read.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/plan/model/size_ranges.hpp"
#include "trainers/shell_words.hpp"

namespace pipewright::models {

class MegatronFields {
 public:
  MegatronFields(std::string_view text, std::string name);

  bool has(const std::string& option);

  void size(int& member, const std::string& option, double most = plan::most_channels);
  void size_or(int& member, const std::string& option, int fallback, double least = 1,
               double most = plan::most_channels);
  /// Returns a finite number of at least 0.
  double number_or(const std::string& option, double fallback);
  /// Returns one of `words`; the first if the option is not given.
  std::string choice(const std::string& option, const std::vector<std::string>& words);
  std::optional<std::string> text(const std::string& option);
  /// Returns a list, `a b` or a YAML file's `[a b]`, which ends at the first word that is not in
  /// `known`.
  std::vector<std::string> list(const std::string& option, const std::vector<std::string>& known);

  void missing(const std::string& option) { missing_.push_back(option); }
  void refuse(const std::string& option, const std::string& message);
  void tell_missing();
  /// Adds a fault for the option that has set this member.
  void fault(const int* member, const std::string& message);
  /// Returns true if there are no faults so far.
  bool are_sound() const { return missing_.empty() && faults_.empty(); }
  const std::vector<std::string>& faults() const { return faults_; }

  /// Returns all options as "name=value; name", without dashes.
  std::string all() const;
  /// Returns the options that were never read.
  std::vector<std::string> unread() const;

 private:
  struct Argument {
    ShellWord option;
    std::optional<ShellWord> value{};
    std::vector<ShellWord> more{};  // after the value
  };
  using Arguments = std::map<std::string, Argument>;

  static Arguments arguments_of(const std::vector<ShellWord>& words);
  const ShellWord& word_of(const std::string& option);
  int integer(const int* member, const std::string& option, double least, double most);

  std::string name_;
  Arguments arguments_;
  std::map<const int*, std::string> option_of_;
  std::vector<std::string> missing_, asked_, faults_;
};

}  // namespace pipewright::models
