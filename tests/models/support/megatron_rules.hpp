#pragma once

// Rules of Megatron-LM 0.20 (github.com/NVIDIA/Megatron-LM, commit d98e8a64 of August 2026) for its
// own arguments, as far as exported files can break them.

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace megatron_rules {

/// The options of a command and their values; an option without a value has an empty one.
struct Arguments {
  std::map<std::string, std::string> values;

  explicit Arguments(const std::string& text);
  bool has(const std::string& option) const { return values.contains(option); }
  std::string text(const std::string& option, const std::string& fallback = "") const;
  int number(const std::string& option, int fallback) const;
  /// Returns the letters of each stage of the layout; empty if there is none.
  std::vector<std::string> layout() const;
  /// Returns the number of stages of each rank.
  int chunks() const;
};

/// A condition that Megatron-LM checks, and arguments that break it.
struct Rule {
  const char* source;
  const char* broken;
  std::function<bool(const Arguments&, int gpus)> holds;
};
const std::vector<Rule>& rules();

}  // namespace megatron_rules
