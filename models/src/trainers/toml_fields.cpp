#include "trainers/toml_fields.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "pipewright/plan/error.hpp"

namespace pipewright::models {

struct TomlFields::Table {
  toml::table root;
};

TomlFields::TomlFields(std::string_view text, std::string name) : name_(std::move(name)) {
  try {
    table_ = std::make_unique<Table>(Table{toml::parse(text, name_)});
  } catch (const toml::parse_error& error) {
    const auto& begin = error.source().begin;
    throw plan::InputError(
        fmt::format("{}:{}:{}: {}", name_, begin.line, begin.column, error.description()));
  }
}

TomlFields::~TomlFields() = default;

int TomlFields::integer(const std::string& field, int fallback) {
  const auto node = table_->root.at_path(field);
  if (!node)
    return fallback;
  const auto value = node.is_integer() ? node.value<std::int64_t>() : std::nullopt;
  if (value && (*value >= 1 || (*value == -1 && fallback == -1)) && *value <= 1'000'000'000)
    return static_cast<int>(*value);
  fault(field, "a whole number of at least 1 is needed here");
  return std::max(1, fallback);
}

std::string TomlFields::text(const std::string& field, const std::string& fallback) {
  const auto node = table_->root.at_path(field);
  if (!node)
    return fallback;
  if (const auto value = node.is_string() ? node.value<std::string>() : std::nullopt)
    return *value;
  fault(field, "a text is needed here");
  return fallback;
}

std::optional<std::vector<std::vector<std::string>>> TomlFields::text_lists(
    const std::string& field) {
  const auto node = table_->root.at_path(field);
  if (!node)
    return {};
  std::vector<std::vector<std::string>> lists;
  bool is_sound = node.is_array();
  if (is_sound)
    for (const toml::node& list : *node.as_array()) {
      lists.emplace_back();
      is_sound = is_sound && list.is_array();
      if (list.is_array())
        for (const toml::node& word : *list.as_array()) {
          is_sound = is_sound && word.is_string();
          lists.back().push_back(word.value_or(std::string()));
        }
    }
  if (is_sound)
    return lists;
  fault(field, "a list of lists of texts is needed here");
  return {};
}

void TomlFields::fault(const std::string& field, const std::string& message) {
  const auto node = table_->root.at_path(field);
  const toml::source_position at = node ? node.node()->source().begin : toml::source_position{};
  faults_.push_back(at ? fmt::format("{}:{}:{}: {}: {}", name_, at.line, at.column, field, message)
                       : fmt::format("{}: {}: {}", name_, field, message));
}

void TomlFields::throw_if_any() const {
  if (!faults_.empty())
    throw plan::InputError(plan::listed_lines(faults_));
}

bool same_letters(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace pipewright::models
