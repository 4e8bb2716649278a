#pragma once

// Strict JSON reading. A JsonDocument remembers the position of each value in its file, so that an
// error can name file, line, column and JSON pointer. A JsonObject reads one object key by key and
// collects every error instead of stopping at the first.

#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

class JsonDocument {
 public:
  /// Parses a text. `name` is the file's name in messages. Keys that this project's formats had in
  /// the previous version get their current names, and a line on stderr says so. NaN, Infinity and
  /// -Infinity, which Python writes for such numbers, become texts. Throws InputError on a syntax
  /// error or a duplicate key.
  static JsonDocument parse(std::string text, std::string name);
  /// Reads and parses a file. Throws InputError if it cannot be read.
  static JsonDocument read(const std::filesystem::path& file);

  /// Replaces one value, as in `pipeline.ranks=4`. The right side is parsed as JSON, or else used
  /// as a string. Missing keys on the path are created; strict reading later reports misspelled
  /// ones. Throws InputError if the text is not an assignment, is not UTF-8, is nested too deeply,
  /// or sets a field of a value that is not an object.
  void set(const std::string& assignment);

  /// Returns `file:line:column` of the value (or of its key), or the `--set` assignment that set
  /// it.
  std::string position(const std::string& pointer) const;

  const Json& root() const { return root_; }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::string text_;
  Json root_;
  bool renames_keys_ = false;  // keys under their old names are read under their current ones
  std::map<std::string, std::size_t> offsets_;    // pointer → start of its key or value
  std::map<std::string, std::string> overrides_;  // pointer → the assignment that set it
};

/// Collects the errors of one document and throws them together as one InputError.
class Diagnostics {
 public:
  explicit Diagnostics(const JsonDocument& document) : document_(&document) {}
  void add(const std::string& pointer, std::string_view message);
  /// Adds each line of an error message about a value that was read from the document.
  void add_lines(const std::string& pointer, std::string_view lines);
  void throw_if_any() const;
  bool empty() const { return errors_.empty(); }
  const JsonDocument& document() const { return *document_; }

 private:
  const JsonDocument* document_;
  std::vector<std::string> errors_;
};

/// The numbers that a field accepts. The error message is generated from the bounds.
struct Range {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool excludes_least = false;
};
inline constexpr Range at_least(double least) { return {.least = least}; }
inline constexpr Range more_than(double least) { return {.least = least, .excludes_least = true}; }

/// Reads one object of a document. On an error, a getter records it and returns a harmless value;
/// the caller builds its result regardless and calls `Diagnostics::throw_if_any` at the end.
class JsonObject {
 public:
  JsonObject(Diagnostics& diagnostics, std::string pointer = "");
  JsonObject(const JsonObject&) = delete;
  JsonObject& operator=(const JsonObject&) = delete;
  JsonObject(JsonObject&&) = delete;
  JsonObject& operator=(JsonObject&&) = delete;
  /// Reports unknown keys: by then, the reader has requested all known ones.
  ~JsonObject();

  bool has(const std::string& key) const;
  std::string text(const std::string& key, const std::optional<std::string>& fallback = {});
  bool flag(const std::string& key, std::optional<bool> fallback = {});
  int integer(const std::string& key, Range range, std::optional<int> fallback = {});
  std::int64_t big_integer(const std::string& key, Range range,
                           std::optional<std::int64_t> fallback = {});
  double number(const std::string& key, Range range, std::optional<double> fallback = {});
  Seconds seconds(const std::string& key, std::optional<Seconds> fallback = {});
  Bytes bytes(const std::string& key, std::optional<Bytes> fallback = {});
  std::string choice(const std::string& key, const std::vector<std::string>& words,
                     const std::optional<std::string>& fallback = {});
  std::vector<int> integers(const std::string& key, Range range,
                            std::optional<std::vector<int>> fallback = {});
  std::vector<bool> flags(const std::string& key, std::optional<std::vector<bool>> fallback = {});
  std::vector<double> numbers(const std::string& key, Range range,
                              std::optional<std::vector<double>> fallback = {});
  std::vector<std::string> texts(const std::string& key,
                                 std::optional<std::vector<std::string>> fallback = {});
  /// Returns the pointers of an array's elements, which `JsonObject` opens or `element` reads.
  std::vector<std::string> elements(const std::string& key, bool required = true);
  /// Returns the pointer of the object under `key`; records an error if it is required and absent.
  std::string child(const std::string& key, bool required = true);
  /// Marks a key as known without reading it.
  void allow(const std::string& key);

  void error(const std::string& key, std::string_view message);
  const std::string& pointer() const { return pointer_; }
  Diagnostics& diagnostics() { return diagnostics_; }
  const Json* find(const std::string& key);

 private:
  const Json* want(const std::string& key, bool has_fallback);
  bool in_range(const std::string& pointer, double value, Range range);

  Diagnostics& diagnostics_;
  std::string pointer_;
  const Json* object_;  // null if the value is not an object; then every getter reports nothing
  std::vector<std::string> known_;
};

/// Reads a value from its own document: checks `format` (such as "pipewright/costs/1"), passes the
/// root object to `read`, and throws all errors together.
template <class Value>
Value read_document(const JsonDocument& document, const std::string& format,
                    const std::function<Value(JsonObject&)>& read) {
  Diagnostics diagnostics(document);
  std::optional<Value> value;
  {
    JsonObject root(diagnostics);
    root.choice("format", {format});
    root.allow("$schema");
    value.emplace(read(root));
  }
  diagnostics.throw_if_any();
  return std::move(*value);
}

/// Returns the content of a file. Throws InputError that names the file if it cannot be read.
std::string read_file(const std::filesystem::path& file);

/// Writes to a temporary file in the same folder and renames it, so that a reader never sees a
/// partial file. Throws std::runtime_error that names the file if writing fails.
void write_file(const std::filesystem::path& file, std::string_view text);
/// Writes a file from several parts, in the same way.
void write_file(const std::filesystem::path& file, const std::vector<std::string_view>& parts);

}  // namespace pipewright::plan
