#pragma once

// Megatron's arguments as they are written: options and values, separated by blanks.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

namespace pipewright::models {

class MegatronText {
 public:
  void add(const std::string& word) { words_.push_back(word); }
  void add_if(bool when, const std::string& word) {
    if (when)
      add(word);
  }
  void add(const std::string& option, int value) { add(fmt::format("{} {}", option, value)); }
  /// Adds a number with up to 12 digits, which hides the rounding of computed values.
  void add_number(const std::string& option, double value) {
    add(fmt::format("{} {:.12g}", option, value));
  }
  std::string text() const { return fmt::format("{}", fmt::join(words_, " ")); }

 private:
  std::vector<std::string> words_;
};

}  // namespace pipewright::models
