#include "settings.hpp"

#include <fmt/format.h>

#include <charconv>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/split.hpp"

namespace pipewright::models {

void refuse_column(const std::string& column, const std::string& value, const std::string& why) {
  throw plan::InputError(fmt::format("{} is \"{}\": {}", column, value, why));
}

Settings::Settings(const std::string& text, char separator) {
  for (std::string part : plan::split(text, separator)) {
    part.erase(0, part.find_first_not_of(' '));
    const auto equals = part.find('=');
    values_[part.substr(0, equals)] = equals == std::string::npos ? "" : part.substr(equals + 1);
  }
}

std::string Settings::text(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? "" : found->second;
}

double Settings::number(const std::string& name, double otherwise) const {
  const std::string value = text(name);
  if (value.empty())
    return otherwise;
  double number = 0;
  const auto [end, fault] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (fault != std::errc() || end != value.data() + value.size() || number < 0)
    refuse_column("other_args", name + "=" + value, "a number is needed here");
  return number;
}

}  // namespace pipewright::models
