// The part of JSON Schema that our schemas use, small enough to trust: it refuses every keyword
// that it does not know, so that a schema cannot say more than is checked.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipewright/plan/json/json_document.hpp"

namespace pipewright::test {

using plan::Json;

class SchemaCheck {
 public:
  using Visitor =
      std::function<void(const Json& schema, const Json& value, const std::string& pointer)>;

  explicit SchemaCheck(Json schema) : root_(std::move(schema)) { check_keywords(root_); }

  /// What is wrong with `value`, one entry each; empty when it is valid.
  std::vector<std::string> errors(const Json& value) const {
    std::vector<std::string> found;
    check(root_, value, "", found);
    return found;
  }

  /// Calls `visit` for each part of a valid value with the schema that describes it.
  void walk(const Json& value, const Visitor& visit) const { walk(root_, value, "", visit); }

 private:
  static void check_keywords(const Json& schema) {
    static const std::set<std::string> known{
        "$schema",     "$defs",      "$ref",     "title",
        "description", "default",    "type",     "enum",
        "const",       "minimum",    "maximum",  "exclusiveMinimum",
        "items",       "oneOf",      "pattern",  "minItems",
        "minLength",   "properties", "required", "additionalProperties"};
    for (const auto& item : schema.items()) {
      if (!known.contains(item.key()))
        throw std::logic_error("schema keyword that the check does not know: " + item.key());
      if (item.key() == "properties" || item.key() == "$defs" || item.key() == "oneOf")
        for (const Json& part : item.value())
          check_keywords(part);
      if (item.key() == "items")
        check_keywords(item.value());
    }
    // Anything else than a flat refusal of unknown keys would have to be looked at here.
    if (schema.contains("properties") && schema.value("additionalProperties", Json()) != false)
      throw std::logic_error("an object of the schema accepts unknown keys");
  }

  const Json& resolved(const Json& schema) const {
    if (!schema.contains("$ref"))
      return schema;
    const auto ref = schema.at("$ref").get<std::string>();
    if (!ref.starts_with("#/"))
      throw std::logic_error("reference to another file: " + ref);
    return root_.at(Json::json_pointer(ref.substr(1)));
  }

  static bool has_type(const Json& value, const std::string& type) {
    if (type == "object")
      return value.is_object();
    if (type == "array")
      return value.is_array();
    if (type == "string")
      return value.is_string();
    if (type == "boolean")
      return value.is_boolean();
    if (type == "integer")
      return value.is_number_integer();
    if (type == "number")
      return value.is_number();
    if (type == "null")
      return value.is_null();
    throw std::logic_error("type that the check does not know: " + type);
  }

  void check(const Json& by_reference, const Json& value, const std::string& pointer,
             std::vector<std::string>& found) const {
    const Json& schema = resolved(by_reference);
    const auto say = [&](const std::string& what) { found.push_back(pointer + ": " + what); };
    if (schema.contains("type") && !has_type(value, schema.at("type")))
      return say("is not of type " + schema.at("type").get<std::string>());
    if (schema.contains("const") && value != schema.at("const"))
      say("is not the one value allowed");
    if (schema.contains("enum")) {
      const Json& words = schema.at("enum");
      if (std::find(words.begin(), words.end(), value) == words.end())
        say("is none of the enum");
    }
    if (schema.contains("oneOf") && branches_of(schema, value).size() != 1)
      say("fits not exactly one of the alternatives");
    if (value.is_number())
      check_number(schema, value.get<double>(), say);
    if (value.is_string())
      check_text(schema, value.get<std::string>(), say);
    if (value.is_array())
      check_array(schema, value, pointer, found);
    if (value.is_object() && schema.contains("properties"))
      check_object(schema, value, pointer, found);
  }

  template <class Say>
  static void check_number(const Json& schema, double value, const Say& say) {
    if (schema.contains("minimum") && value < schema.at("minimum"))
      say("is below the minimum");
    if (schema.contains("maximum") && value > schema.at("maximum"))
      say("is above the maximum");
    if (schema.contains("exclusiveMinimum") && value <= schema.at("exclusiveMinimum"))
      say("is not above the exclusive minimum");
  }

  template <class Say>
  static void check_text(const Json& schema, const std::string& value, const Say& say) {
    if (schema.contains("minLength") && value.size() < schema.at("minLength"))
      say("is too short");
    if (schema.contains("pattern") &&
        !std::regex_search(value, std::regex(schema.at("pattern").get<std::string>())))
      say("does not match the pattern");
  }

  void check_array(const Json& schema, const Json& value, const std::string& pointer,
                   std::vector<std::string>& found) const {
    if (schema.contains("minItems") && value.size() < schema.at("minItems"))
      found.push_back(pointer + ": has too few items");
    if (!schema.contains("items"))
      return;
    for (std::size_t i = 0; i < value.size(); ++i)
      check(schema.at("items"), value[i], fmt::format("{}/{}", pointer, i), found);
  }

  void check_object(const Json& schema, const Json& value, const std::string& pointer,
                    std::vector<std::string>& found) const {
    for (const Json& key : schema.value("required", Json::array()))
      if (!value.contains(key.get<std::string>()))
        found.push_back(pointer + ": misses " + key.get<std::string>());
    for (const auto& item : value.items()) {
      const std::string below = pointer + "/" + item.key();
      if (schema.at("properties").contains(item.key()))
        check(schema.at("properties").at(item.key()), item.value(), below, found);
      else
        found.push_back(below + ": is not described");
    }
  }

  std::vector<const Json*> branches_of(const Json& schema, const Json& value) const {
    std::vector<const Json*> fitting;
    for (const Json& branch : schema.at("oneOf")) {
      std::vector<std::string> found;
      check(branch, value, "", found);
      if (found.empty())
        fitting.push_back(&branch);
    }
    return fitting;
  }

  void walk(const Json& by_reference, const Json& value, const std::string& pointer,
            const Visitor& visit) const {
    const Json& schema = resolved(by_reference);
    visit(schema, value, pointer);
    if (schema.contains("oneOf"))
      walk(*branches_of(schema, value).at(0), value, pointer, visit);
    if (value.is_array() && schema.contains("items"))
      for (std::size_t i = 0; i < value.size(); ++i)
        walk(schema.at("items"), value[i], fmt::format("{}/{}", pointer, i), visit);
    if (value.is_object() && schema.contains("properties"))
      for (const auto& item : value.items())
        walk(schema.at("properties").at(item.key()), item.value(), pointer + "/" + item.key(),
             visit);
  }

  Json root_;
};

}  // namespace pipewright::test
