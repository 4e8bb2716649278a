#pragma once

// The fields that a configuration of another trainer sets, by dotted names, with their places in
// the file. Getters collect all faults.

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipewright/plan/json/json.hpp"

namespace pipewright::models {

struct GivenField {
  std::optional<plan::Json> value;  // absent: an expression that only Python can evaluate
  std::string place;                // "train.toml:4:28"
};

class GivenFields {
 public:
  GivenFields(std::string name, std::map<std::string, GivenField> fields)
      : name_(std::move(name)), fields_(std::move(fields)) {}

  void add(const std::string& field, GivenField value) { fields_[field] = std::move(value); }
  /// States which function sets the unset fields of a section, or of unset sections if it is "".
  /// Getters reject such fields, because the file does not define the function. Empty: unset fields
  /// have their defaults.
  void set_by(const std::string& section, const std::string& function) {
    set_by_[section] = function;
  }

  const std::map<std::string, GivenField>& all() const { return fields_; }

  /// Returns null if the field is not set or is None. Records a fault if it cannot be evaluated.
  const plan::Json* find(const std::string& field);

  // These return the fallback if the field is not set, and record a fault if it has another type.

  /// Accepts integers from `least` on, and -1 if that is the fallback.
  int integer(const std::string& field, int fallback, int least = 1);
  /// Accepts numbers of at least 0, and infinity.
  double number(const std::string& field, double fallback);
  bool flag(const std::string& field, bool fallback);
  std::string text(const std::string& field, const std::string& fallback);
  std::optional<std::vector<std::vector<std::string>>> text_lists(const std::string& field);

  void fault(const std::string& field, const std::string& message);
  /// Throws InputError if there are faults.
  void throw_if_any() const;

 private:
  std::string name_;
  std::map<std::string, GivenField> fields_;
  std::map<std::string, std::string> set_by_;  // function by section; empty: the file
  std::vector<std::string> faults_;
};

/// Throws InputError with line and column if the text is not valid TOML.
GivenFields toml_fields(std::string_view text, const std::string& name);

/// Reads the configuration that a function of a Python file returns, without running Python: values
/// are literals, calls of configuration classes and of functions of the same file. `function`: its
/// name, or empty if the file has only one. Throws InputError with the line of other statements.
GivenFields python_fields(std::string_view text, const std::string& name,
                          const std::string& function);

/// Returns true if the texts are equal up to case.
bool same_letters(std::string_view a, std::string_view b);

}  // namespace pipewright::models
