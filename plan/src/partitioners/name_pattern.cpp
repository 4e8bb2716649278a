#include "pipewright/plan/partitioners/name_pattern.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"

namespace pipewright::plan {
namespace {

/// Checks a pattern, because the regex library recurses over it and does not check repeat counts
/// for overflow.
void check_pattern(const std::string& where, const std::string& pattern) {
  constexpr std::size_t most_in_pattern = 200;
  constexpr std::ptrdiff_t most_in_number = 3;
  if (pattern.size() > most_in_pattern)
    throw InputError(fmt::format("{}: the pattern has {} letters, the most is {}", where,
                                 pattern.size(), most_in_pattern));
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  for (auto at = pattern.begin(); at != pattern.end();) {
    const auto end = std::find_if_not(at, pattern.end(), is_digit);
    if (end - at > most_in_number)
      throw InputError(
          fmt::format("{}:{}: {} is too large a number for a pattern, which has at most {} digits",
                      where, pattern, std::string(at, end), most_in_number));
    at = end == pattern.end() ? end : end + 1;
  }
}

std::regex compiled_pattern(const std::string& where, const std::string& pattern) {
  check_pattern(where, pattern);
  try {
    return std::regex(pattern, std::regex::ECMAScript | std::regex::icase);
  } catch (const std::regex_error& error) {
    throw InputError(
        fmt::format("{}:{}: this is not a regular expression: {}", where, pattern, error.what()));
  }
}

}  // namespace

NamePattern::NamePattern(const std::string& where, const std::string& pattern)
    : expression_(compiled_pattern(where, pattern)) {}

bool NamePattern::is_in(const std::string& name) const {
  return std::regex_search(name, expression_);
}

}  // namespace pipewright::plan
