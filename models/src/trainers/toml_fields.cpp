#include <fmt/format.h>
#include <toml++/toml.h>

#include "pipewright/plan/error.hpp"
#include "trainers/given_fields.hpp"

namespace pipewright::models {
namespace {

plan::Json json_of(const toml::node& node) {
  if (const toml::array* const array = node.as_array()) {
    plan::Json list = plan::Json::array();
    for (const toml::node& each : *array)
      list.push_back(json_of(each));
    return list;
  }
  if (const toml::table* const table = node.as_table()) {
    plan::Json object = plan::Json::object();
    for (const auto& [key, value] : *table)
      object[std::string(key.str())] = json_of(value);
    return object;
  }
  if (node.is_boolean())
    return node.value_or(false);
  if (node.is_integer())
    return node.value_or(std::int64_t{0});
  if (node.is_floating_point())
    return node.value_or(0.0);
  return node.value_or(std::string("a date or time"));
}

void add_fields(const toml::table& table, const std::string& prefix, const std::string& name,
                std::map<std::string, GivenField>& fields) {
  for (const auto& [key, value] : table) {
    const std::string field = prefix + std::string(key.str());
    const toml::source_position& at = value.source().begin;
    if (const toml::table* const section = value.as_table())
      add_fields(*section, field + ".", name, fields);
    else
      fields[field] = {json_of(value), fmt::format("{}:{}:{}", name, at.line, at.column)};
  }
}

}  // namespace

GivenFields toml_fields(std::string_view text, const std::string& name) {
  std::map<std::string, GivenField> fields;
  try {
    add_fields(toml::parse(text, name), "", name, fields);
  } catch (const toml::parse_error& error) {
    const auto& begin = error.source().begin;
    throw plan::InputError(
        fmt::format("{}:{}:{}: {}", name, begin.line, begin.column, error.description()));
  }
  return {name, std::move(fields)};
}

}  // namespace pipewright::models
