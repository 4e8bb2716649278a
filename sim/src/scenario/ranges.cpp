#include "pipewright/sim/scenario/ranges.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "pipewright/plan/error.hpp"

namespace pipewright::sim {
namespace {

constexpr std::size_t most_values = 100'000;  // of one field
constexpr std::size_t most_combinations = 1'000'000;

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    return {};
  return value;
}

/// Returns "64" rather than "64.0", so that it can be set if a whole number is required.
std::string written(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15)
    return fmt::format("{}", static_cast<std::int64_t>(value));
  return fmt::format("{}", value);
}

/// Splits at commas outside of brackets and quotes, so that a value may be a list.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  bool quoted = false;
  for (const char c : text) {
    quoted = quoted != (c == '"');
    if (!quoted)
      depth += (c == '[' || c == '{') - (c == ']' || c == '}');
    if (c == ',' && depth == 0 && !quoted)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

struct Range {
  double first, last, step;
  bool multiplies;
};

/// Returns nothing if the text is not a range: then it is a single value.
std::optional<Range> parse_range(const std::string& text) {
  const auto dots = text.find("..");
  if (dots == std::string::npos)
    return {};
  const auto first = number(text.substr(0, dots));
  std::string rest = text.substr(dots + 2);
  // The sign of an exponent does not start a step: 1e+3.
  auto mark = rest.find('x');
  if (mark == std::string::npos)
    for (std::size_t at = 1; at < rest.size() && mark == std::string::npos; ++at)
      if (rest[at] == '+' && rest[at - 1] != 'e' && rest[at - 1] != 'E')
        mark = at;
  const auto last = number(rest.substr(0, mark));
  if (!first || !last)
    return {};
  if (mark == std::string::npos)
    return Range{*first, *last, 1, false};
  const auto step = number(rest.substr(mark + 1));
  if (!step)
    return {};
  return Range{*first, *last, *step, rest[mark] == 'x'};
}

void append(const Range& range, const std::string& assignment, std::vector<std::string>& values) {
  const auto refuse = [&](std::string_view why) {
    return plan::InputError(fmt::format("--set {}: {}", assignment, why));
  };
  if (range.last < range.first)
    throw refuse("the range is empty: it ends before it begins");
  if (range.multiplies ? !(range.step > 1) || !(range.first > 0) : !(range.step > 0))
    throw refuse(range.multiplies
                     ? "the range never ends: multiply something above 0 by more than 1"
                     : "the range never ends: add more than 0");
  const double slack = 1e-9 * (range.last - range.first);  // for sums of steps such as 0.1
  double value = range.first;
  for (std::size_t i = 0; value <= range.last + slack; ++i) {
    if (values.size() == most_values)
      throw refuse("more than a hundred thousand values");
    values.push_back(written(value));
    const auto n = static_cast<double>(i + 1);
    value = range.multiplies ? range.first * std::pow(range.step, n) : range.first + range.step * n;
  }
}

}  // namespace

SweptField parse_swept_field(const std::string& assignment) {
  const auto equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    throw plan::InputError(fmt::format(
        "--set {}: write FIELD=VALUES, such as pipeline.microbatches=4..64x2", assignment));
  SweptField swept{assignment.substr(0, equals), {}};
  for (const std::string& part : split(assignment.substr(equals + 1)))
    if (const auto range = parse_range(part))
      append(*range, assignment, swept.values);
    else
      swept.values.push_back(part);
  return swept;
}

std::vector<std::vector<std::string>> combinations(const std::vector<SweptField>& fields) {
  std::vector<std::vector<std::string>> all(1);
  for (const SweptField& field : fields) {
    if (all.size() * field.values.size() > most_combinations)
      throw plan::InputError(
          fmt::format("more than {} combinations to simulate", most_combinations));
    std::vector<std::vector<std::string>> longer;
    for (const auto& assignments : all)
      for (const std::string& value : field.values) {
        longer.push_back(assignments);
        longer.back().push_back(field.field + "=" + value);
      }
    all = std::move(longer);
  }
  return all;
}

std::vector<std::string> expanded(const std::string& assignment, bool has_link_between_nodes) {
  const auto equals = assignment.find('=');
  const std::string field = assignment.substr(0, equals);
  std::string key;
  if (field == "link.bandwidth")
    key = "bandwidth_per_s";
  else if (field == "link.latency")
    key = "latency_s";
  else
    return {assignment};
  std::vector<std::string> both{"cluster.within_node." + key + assignment.substr(equals)};
  if (has_link_between_nodes)
    both.push_back("cluster.between_nodes." + key + assignment.substr(equals));
  return both;
}

}  // namespace pipewright::sim
