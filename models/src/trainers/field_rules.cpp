#include "trainers/field_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "pipewright/plan/error.hpp"

namespace pipewright::models {
namespace {

bool matches(std::string_view rule, std::string_view field) {
  if (!rule.ends_with('*'))
    return rule == field;
  rule.remove_suffix(1);  // ends in the separator of sections
  return field.starts_with(rule) || field == rule.substr(0, rule.size() - 1);
}

}  // namespace

const FieldRule* find_rule(std::span<const FieldRule> rules, std::string_view field) {
  const auto found =
      std::ranges::find_if(rules, [&](const FieldRule& rule) { return matches(rule.name, field); });
  return found == rules.end() ? nullptr : &*found;
}

std::optional<std::string> rule_fault(std::span<const FieldRule> rules, const std::string& field,
                                      const plan::Json* value, const std::string& trainer) {
  const FieldRule* const rule = find_rule(rules, field);
  if (rule == nullptr && value == nullptr)
    return "write the value itself: Python is not run to evaluate expressions";
  if (rule == nullptr) {
    std::vector<std::string> names;
    for (const FieldRule& each : rules)
      names.emplace_back(each.name);
    return fmt::format("not a known field of {}{}", trainer, plan::did_you_mean(field, names));
  }
  if (rule->use != FieldUse::Fixed)
    return {};
  const plan::Json accepted = plan::Json::parse(rule->accepted);
  if (value != nullptr && std::ranges::find(accepted, *value) != accepted.end())
    return {};
  return fmt::format("{}: {}",
                     value == nullptr
                         ? "this expression"
                         : value->dump(-1, ' ', false, plan::Json::error_handler_t::replace),
                     rule->reason);
}

}  // namespace pipewright::models
