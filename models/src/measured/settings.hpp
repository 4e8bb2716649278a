#pragma once

// Named settings in a cell of a table: "a=1; b" with ';' as separator, or "A=1 B=2" with ' '. A
// setting without a value has an empty one.

#include <map>
#include <string>

namespace pipewright::models {

/// Throws InputError that names the column, its unsupported value and the reason.
[[noreturn]] void refuse_column(const std::string& column, const std::string& value,
                                const std::string& why);

class Settings {
 public:
  Settings(const std::string& text, char separator);

  bool has(const std::string& name) const { return values_.count(name) > 0; }
  const std::map<std::string, std::string>& all() const { return values_; }
  /// Returns an empty text if the setting is missing.
  std::string text(const std::string& name) const;
  /// Throws InputError if the value is not a number, or is negative.
  double number(const std::string& name, double otherwise) const;
  int whole(const std::string& name, int otherwise) const {
    return static_cast<int>(number(name, otherwise));
  }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace pipewright::models
