#pragma once

// Fields of a TOML text by their dotted names, with all faults at once.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright::models {

class TomlFields {
 public:
  /// Throws InputError with line and column for what is no TOML.
  TomlFields(std::string_view text, std::string name);
  ~TomlFields();

  /// The fallback where it is not there; a fault where it is something else. Whole numbers from 1
  /// on, and -1 where that is the fallback.
  int integer(const std::string& field, int fallback);
  std::string text(const std::string& field, const std::string& fallback);
  std::optional<std::vector<std::vector<std::string>>> text_lists(const std::string& field);

  void fault(const std::string& field, const std::string& message);
  /// Throws InputError.
  void throw_if_any() const;

 private:
  struct Table;  // of the library's
  std::unique_ptr<Table> table_;
  std::string name_;
  std::vector<std::string> faults_;
};

/// Whether they differ in case alone.
bool same_letters(std::string_view a, std::string_view b);

}  // namespace pipewright::models
