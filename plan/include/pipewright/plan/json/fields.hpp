#pragma once

// Declarative field lists. A struct lists its fields once in `visit_fields`, which the JSON reader,
// the writer and the JSON Schema all use. A field has its key, its value, the rule for valid
// values, and its meaning.

#include <algorithm>
#include <concepts>
#include <filesystem>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

/// Rule for the valid values of a field. An optional field keeps its default value if it is absent.
struct FieldRule {
  bool needed = false;
  Range range{};
  /// Names of an enumeration's values, in their order, or the strings that a text field accepts.
  const std::vector<std::string>* words = nullptr;
  /// JSON Schema that replaces the one derived from type, range and words.
  const char* schema = nullptr;
};

inline FieldRule any() { return {}; }
inline FieldRule within(Range range) { return {.range = range}; }
inline FieldRule one_of(const std::vector<std::string>& words) { return {.words = &words}; }
inline FieldRule needed(FieldRule rule) {
  rule.needed = true;
  return rule;
}

template <class Struct, class Plain>
concept MaybeConst = std::same_as<std::remove_const_t<Struct>, Plain>;

// Upper limit of sizes: larger than in any current model, and small enough that products of sizes
// fit in 64 bits.
inline constexpr Range size_range{.least = 1, .most = 1'000'000};

/// A struct with a list of fields. In a file it is an object.
template <class Value>
concept HasFields = requires(Value& value) {
  visit_fields(value, [](const char*, auto&, const FieldRule&, const char*) {});
};
template <class Value>
struct IsOptionalWithFields : std::false_type {};
template <HasFields Value>
struct IsOptionalWithFields<std::optional<Value>> : std::true_type {};
template <class Value>
struct IsListWithFields : std::false_type {};
template <HasFields Value>
struct IsListWithFields<std::vector<Value>> : std::true_type {};
/// A string, or a list of integers in its place.
using TextOrIntegers = std::variant<std::string, std::vector<int>>;

/// Reads each field of a JSON object into a value that holds the defaults.
class FieldReader {
 public:
  explicit FieldReader(JsonObject& object) : object_(object) {}

  template <class Value>
  void operator()(const char* key, Value& value, const FieldRule& rule, const char* /*meaning*/) {
    const std::optional<Value> fallback = rule.needed ? std::nullopt : std::optional(value);
    if constexpr (std::is_same_v<Value, int>)
      value = object_.integer(key, rule.range, fallback);
    else if constexpr (std::is_same_v<Value, double>)
      value = object_.number(key, rule.range, fallback);
    else if constexpr (std::is_same_v<Value, bool>)
      value = object_.flag(key, fallback);
    else if constexpr (std::is_same_v<Value, Seconds>)
      value = object_.seconds(key, fallback);
    else if constexpr (std::is_same_v<Value, Bytes>)
      value = object_.bytes(key, fallback);
    else if constexpr (std::is_same_v<Value, std::vector<bool>>)
      value = object_.flags(key, fallback);
    else if constexpr (std::is_same_v<Value, std::vector<double>>)
      value = object_.numbers(key, rule.range, fallback);
    else if constexpr (std::is_same_v<Value, std::vector<int>>)
      value = object_.integers(key, rule.range, fallback);
    else if constexpr (std::is_same_v<Value, std::string>)
      value = rule.words != nullptr ? object_.choice(key, *rule.words, fallback)
                                    : object_.text(key, fallback);
    else if constexpr (std::is_same_v<Value, std::filesystem::path>)
      value = object_.text(key, rule.needed ? std::nullopt : std::optional(value.string()));
    else if constexpr (std::is_same_v<Value, TextOrIntegers>)
      value = read_text_or_integers(key, value);
    else if constexpr (HasFields<Value>)
      read_child(key, value, rule);
    else if constexpr (IsOptionalWithFields<Value>::value)
      read_optional(key, value, rule);
    else if constexpr (IsListWithFields<Value>::value)
      read_list(key, value, rule);
    else if constexpr (std::is_same_v<Value, std::vector<std::string>>)
      value = object_.texts(key, fallback);
    else
      value = read_word(key, value, rule);
  }

 private:
  template <class Value>
  void read_child(const char* key, Value& value, const FieldRule& rule) {
    if (!rule.needed && !object_.has(key))
      return;
    const std::string pointer = object_.child(key);
    JsonObject child(object_.diagnostics(), pointer);
    visit_fields(value, FieldReader(child));
  }

  template <class Value>
  void read_optional(const char* key, std::optional<Value>& value, const FieldRule& rule) {
    if (object_.has(key))
      read_child(key, value.emplace(), rule);
    object_.allow(key);
  }

  template <class Value>
  void read_list(const char* key, Value& value, const FieldRule& rule) {
    if (object_.has(key))
      value.clear();
    for (const std::string& pointer : object_.elements(key, rule.needed)) {
      JsonObject element(object_.diagnostics(), pointer);
      visit_fields(value.emplace_back(), FieldReader(element));
    }
  }

  TextOrIntegers read_text_or_integers(const char* key, const TextOrIntegers& fallback) {
    const Json* value = object_.find(key);
    if (value == nullptr)
      return object_.allow(key), fallback;
    if (value->is_array())
      return object_.integers(key, at_least(0));
    if (value->is_string())
      return object_.text(key);
    object_.allow(key);
    object_.error(key, "a text or a list of boundaries is needed here, such as [0, 2, 5]");
    return fallback;
  }

  template <class Enum>
  Enum read_word(const char* key, Enum fallback, const FieldRule& rule) {
    const std::string word =
        object_.choice(key, *rule.words, (*rule.words)[static_cast<std::size_t>(fallback)]);
    for (std::size_t at = 0; at < rule.words->size(); ++at)
      if ((*rule.words)[at] == word)
        return static_cast<Enum>(at);
    return fallback;
  }

  JsonObject& object_;
};

template <class Struct>
Struct read_fields(JsonObject& object) {
  Struct value;
  visit_fields(value, FieldReader(object));
  return value;
}

/// Returns true if the value that was read equals the value in the file. If not, an error was
/// recorded and the value is a fallback, so checks across fields should skip it.
template <class Value>
bool taken(JsonObject& object, const std::string& key, const Value& value) {
  const Json* written = object.find(key);
  return written == nullptr || *written == Json(value);
}

template <class Struct>
Json fields_json(const Struct& value);

/// Returns the JSON form of a field's value.
template <class Value>
Json field_json(const Value& value, const FieldRule& rule) {
  if constexpr (std::is_enum_v<Value>)
    return (*rule.words)[static_cast<std::size_t>(value)];
  else if constexpr (std::is_same_v<Value, Seconds> || std::is_same_v<Value, Bytes>)
    return value.value;
  else if constexpr (std::is_same_v<Value, std::filesystem::path>)
    return value.string();
  else if constexpr (HasFields<Value>)
    return fields_json(value);
  else if constexpr (IsOptionalWithFields<Value>::value)
    return value ? fields_json(*value) : Json();
  else if constexpr (IsListWithFields<Value>::value) {
    Json list = Json::array();
    for (const auto& element : value)
      list.push_back(fields_json(element));
    return list;
  } else if constexpr (std::is_same_v<Value, TextOrIntegers>)
    return std::visit([](const auto& choice) { return Json(choice); }, value);
  else
    return value;
}

template <class Struct>
Json fields_json(const Struct& value) {
  Json json = Json::object();
  visit_fields(value, [&](const char* key, const auto& field, const FieldRule& rule,
                          const char* /*meaning*/) {
    Json written = field_json(field, rule);
    if (!written.is_null())  // absent optional
      json[key] = std::move(written);
  });
  return json;
}

/// Returns true if every field that was read equals the value in the file.
template <class Struct>
bool all_taken(JsonObject& object, const Struct& value) {
  const Json read = fields_json(value);
  return std::all_of(read.items().begin(), read.items().end(),
                     [&](const auto& field) { return taken(object, field.key(), field.value()); });
}

}  // namespace pipewright::plan
