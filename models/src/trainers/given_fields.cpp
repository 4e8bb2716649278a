#include "trainers/given_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "pipewright/plan/error.hpp"

namespace pipewright::models {

const plan::Json* GivenFields::find(const std::string& field) {
  const auto found = fields_.find(field);
  if (found != fields_.end()) {
    if (!found->second.value)
      fault(field, "write the value itself: Python is not run to evaluate expressions");
    return found->second.value && !found->second.value->is_null() ? &*found->second.value : nullptr;
  }
  const std::string section = field.substr(0, field.find('.'));
  auto setter = set_by_.find(section);
  if (setter == set_by_.end())
    setter = set_by_.find("");
  if (setter != set_by_.end() && !setter->second.empty()) {
    fault(section,
          fmt::format("{} sets it, which this file does not define: assign all of it here, "
                      "as in config.{} = …",
                      setter->second, section));
    set_by_[section].clear();  // one fault is enough
  }
  return nullptr;
}

int GivenFields::integer(const std::string& field, int fallback, int least) {
  const plan::Json* const value = find(field);
  if (value == nullptr)
    return fallback;
  if (value->is_number_integer() && *value <= 1'000'000'000 &&
      (*value >= least || (*value == -1 && fallback == -1)))
    return value->get<int>();
  fault(field, fmt::format("a whole number of at least {} is needed here", least));
  return std::max(least, fallback);
}

double GivenFields::number(const std::string& field, double fallback) {
  const plan::Json* const value = find(field);
  if (value == nullptr)
    return fallback;
  if (value->is_number() && value->get<double>() >= 0)
    return value->get<double>();
  fault(field, "a number of at least 0 is needed here");
  return fallback;
}

bool GivenFields::flag(const std::string& field, bool fallback) {
  const plan::Json* const value = find(field);
  if (value == nullptr)
    return fallback;
  if (value->is_boolean())
    return value->get<bool>();
  fault(field, "true or false is needed here");
  return fallback;
}

std::string GivenFields::text(const std::string& field, const std::string& fallback) {
  const plan::Json* const value = find(field);
  if (value == nullptr)
    return fallback;
  if (value->is_string())
    return value->get<std::string>();
  fault(field, "a text is needed here");
  return fallback;
}

std::optional<std::vector<std::vector<std::string>>> GivenFields::text_lists(
    const std::string& field) {
  const plan::Json* const value = find(field);
  if (value == nullptr)
    return {};
  const auto is_text = [](const plan::Json& word) { return word.is_string(); };
  const auto is_list = [&](const plan::Json& list) {
    return list.is_array() && std::ranges::all_of(list, is_text);
  };
  if (value->is_array() && std::ranges::all_of(*value, is_list))
    return value->get<std::vector<std::vector<std::string>>>();
  fault(field, "a list of lists of texts is needed here");
  return {};
}

void GivenFields::fault(const std::string& field, const std::string& message) {
  const auto found = fields_.find(field);
  faults_.push_back(fmt::format("{}: {}: {}", found == fields_.end() ? name_ : found->second.place,
                                field, message));
}

void GivenFields::throw_if_any() const {
  if (!faults_.empty())
    throw plan::InputError(plan::listed_lines(faults_));
}

bool same_letters(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace pipewright::models
