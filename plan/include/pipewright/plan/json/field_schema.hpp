#pragma once

// Generates the JSON Schema of a struct with a list of fields (fields.hpp): each key with its type,
// bounds, default and meaning, in the list's order.

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>

#include "pipewright/plan/json/fields.hpp"

namespace pipewright::plan {

template <class Value>
constexpr bool IsNumber =
    std::is_arithmetic_v<Value> || std::is_same_v<Value, Bytes> || std::is_same_v<Value, Seconds>;

template <class Struct>
Json schema_of(const char* meaning = "");

template <class Value>
Json type_schema(const FieldRule& rule) {
  if (rule.schema != nullptr)
    return Json::parse(rule.schema);
  if constexpr (std::is_same_v<Value, bool>)
    return {{"type", "boolean"}};
  if constexpr (std::is_same_v<Value, std::string> || std::is_enum_v<Value>) {
    Json text{{"type", "string"}};
    if (rule.words != nullptr)
      text["enum"] = *rule.words;
    return text;
  }
  if constexpr (std::is_same_v<Value, std::vector<bool>>)
    return {{"type", "array"}, {"items", {{"type", "boolean"}}}};
  if constexpr (std::is_same_v<Value, std::vector<double>>)
    return {{"type", "array"}, {"items", type_schema<double>(rule)}};
  if constexpr (IsListWithFields<Value>::value)
    return {{"type", "array"}, {"items", schema_of<typename Value::value_type>()}};
  if constexpr (!IsNumber<Value>)
    throw std::logic_error("a field of this type needs FieldRule::schema");
  const bool whole = std::is_same_v<Value, int> || std::is_same_v<Value, Bytes>;
  Json number{{"type", whole ? "integer" : "number"}};
  const bool counts = std::is_same_v<Value, Bytes> || std::is_same_v<Value, Seconds>;
  const Range range = counts ? at_least(0) : rule.range;
  const auto add = [&](const char* key, double bound) {
    if (std::isfinite(bound) && bound == std::floor(bound))
      number[key] = static_cast<std::int64_t>(bound);
    else if (std::isfinite(bound))
      number[key] = bound;
  };
  add(range.excludes_least ? "exclusiveMinimum" : "minimum", range.least);
  add("maximum", range.most);
  return number;
}

inline Json object_schema(const char* meaning) {
  return {{"description", meaning},
          {"type", "object"},
          {"properties", Json::object()},
          {"required", Json::array()},
          {"additionalProperties", false}};
}

/// Adds the fields of a struct. The values of a default-constructed struct are the defaults.
template <class Struct>
void add_fields(Json& object) {
  const Struct plain{};
  visit_fields(plain,
               [&](const char* key, const auto& value, const FieldRule& rule, const char* meaning) {
                 using Value = std::remove_cvref_t<decltype(value)>;
                 Json field = Json::object();
                 if (*meaning != '\0')
                   field["description"] = meaning;
                 field.update(type_schema<Value>(rule));
                 if (rule.needed)
                   object["required"].push_back(key);
                 else if constexpr (!HasFields<Value> && !IsOptionalWithFields<Value>::value)
                   field["default"] = Json(field_json(value, rule));
                 object["properties"][key] = std::move(field);
               });
}

template <class Struct>
Json schema_of(const char* meaning) {
  Json object = object_schema(meaning);
  if (*meaning == '\0')
    object.erase("description");
  add_fields<Struct>(object);
  return object;
}

}  // namespace pipewright::plan
