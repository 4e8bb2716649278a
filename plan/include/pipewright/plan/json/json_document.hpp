#pragma once

// Strict reading of JSON. A JsonDocument remembers where each value stands in its file, so that an
// error can name file, line, column and JSON pointer; a JsonObject reads one object key by key and
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
  /// `name` stands for the file in messages. Throws InputError on a syntax error or a doubled key.
  static JsonDocument parse(std::string text, std::string name);
  /// Throws InputError when the file cannot be read.
  static JsonDocument read(const std::filesystem::path& file);

  /// Replaces one value: `pipeline.ranks=4`. The right side is JSON, or else taken as a string.
  /// Keys on the way are created, so that strict reading later names a misspelt one. Throws
  /// InputError for what is no assignment, no UTF-8 or nested too deep, and for a field of no
  /// object.
  void set(const std::string& assignment);

  /// `file:line:column` of the value (or of its key), or the `--set` that put it there.
  std::string position(const std::string& pointer) const;

  const Json& root() const { return root_; }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  std::string text_;
  Json root_;
  std::map<std::string, std::size_t> offsets_;    // pointer → where its key or value begins
  std::map<std::string, std::string> overrides_;  // pointer → the assignment that set it
};

/// Errors of one document, thrown together as one InputError.
class Diagnostics {
 public:
  explicit Diagnostics(const JsonDocument& document) : document_(&document) {}
  void add(const std::string& pointer, std::string_view message);
  /// Each line of what a value that was read from the document was refused with.
  void add_lines(const std::string& pointer, std::string_view lines);
  void throw_if_any() const;
  bool empty() const { return errors_.empty(); }
  const JsonDocument& document() const { return *document_; }

 private:
  const JsonDocument* document_;
  std::vector<std::string> errors_;
};

/// The numbers that a field accepts; words for the message come from the bounds.
struct Range {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool excludes_least = false;
};
inline constexpr Range at_least(double least) { return {.least = least}; }
inline constexpr Range more_than(double least) { return {.least = least, .excludes_least = true}; }

/// One object of a document. A getter that finds an error records it and returns a harmless value;
/// the caller builds its value regardless and calls `Diagnostics::throw_if_any` at the end.
class JsonObject {
 public:
  JsonObject(Diagnostics& diagnostics, std::string pointer = "");
  JsonObject(const JsonObject&) = delete;
  JsonObject& operator=(const JsonObject&) = delete;
  JsonObject(JsonObject&&) = delete;
  JsonObject& operator=(JsonObject&&) = delete;
  /// Unknown keys are reported when the object goes out of scope: by then all known were asked for.
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
  /// Pointers of the elements of an array, for `JsonObject` to open or `element` to read.
  std::vector<std::string> elements(const std::string& key, bool required = true);
  /// Where the object under `key` stands; an error is recorded when it is required and absent.
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
  const Json* object_;  // null when what stands there is no object: then every getter is silent
  std::vector<std::string> known_;
};

/// Opens a value's own document: checks `format` (such as "pipewright/costs/1"), hands the root to
/// `read`, and throws all errors at once.
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

/// All of a file. Throws InputError naming it when it cannot be read.
std::string read_file(const std::filesystem::path& file);

/// Writes to a temporary neighbour and renames, so that a reader never sees half a file.
/// Throws std::runtime_error naming the file when the disk refuses.
void write_file(const std::filesystem::path& file, std::string_view text);
/// The same of a file in parts.
void write_file(const std::filesystem::path& file, const std::vector<std::string_view>& parts);

}  // namespace pipewright::plan
