#pragma once

// Settings by name, as a cell of a table has them: "a=1; b" with ';' between them, or "A=1 B=2"
// with ' '. One without a value has an empty one.

#include <map>
#include <string>

namespace pipewright::models {

/// Throws InputError: what a column says and cannot be taken, and why.
[[noreturn]] void refuse_column(const std::string& column, const std::string& value,
                                const std::string& why);

class Settings {
 public:
  Settings(const std::string& text, char separator);

  bool has(const std::string& name) const { return values_.count(name) > 0; }
  /// Empty where it is not there.
  std::string text(const std::string& name) const;
  /// Throws InputError where the value is no number, or less than 0.
  double number(const std::string& name, double otherwise) const;
  int whole(const std::string& name, int otherwise) const {
    return static_cast<int>(number(name, otherwise));
  }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace pipewright::models
