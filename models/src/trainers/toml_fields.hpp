#pragma once

// Access to fields of a TOML text by dotted names, which collects all faults.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright::models {

class TomlFields {
 public:
  /// Throws InputError with line and column if the text is not valid TOML.
  TomlFields(std::string_view text, std::string name);
  ~TomlFields();

  /// Returns the fallback if the field is missing, and records a fault if it has another type.
  /// Accepts integers from 1 on, and -1 if that is the fallback.
  int integer(const std::string& field, int fallback);
  std::string text(const std::string& field, const std::string& fallback);
  std::optional<std::vector<std::vector<std::string>>> text_lists(const std::string& field);

  void fault(const std::string& field, const std::string& message);
  /// Throws InputError if there are faults.
  void throw_if_any() const;

 private:
  struct Table;  // of toml++
  std::unique_ptr<Table> table_;
  std::string name_;
  std::vector<std::string> faults_;
};

/// Returns true if the texts are equal up to case.
bool same_letters(std::string_view a, std::string_view b);

}  // namespace pipewright::models
