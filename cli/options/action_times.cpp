#include "options/action_times.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "pipewright/plan/error.hpp"

namespace pipewright::cli {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts{""};
  for (const char c : text)
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

double parse_time(const std::string& text, const char* what) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, bad] = std::from_chars(text.data(), end, value);
  if (bad != std::errc() || stop != end || !std::isfinite(value) || value < 0 || value > 1e12)
    throw plan::InputError(
        fmt::format("--costs: \"{}\" is no {} time: write a number from 0 to 1e12, or one a stage "
                    "separated by /",
                    text, what));
  return value;
}

std::vector<double> parse_list(const std::string& text, const char* what) {
  std::vector<double> list;
  for (const std::string& part : split(text, '/'))
    list.push_back(parse_time(part, what));
  return list;
}

}  // namespace

plan::ActionTimes parse_times(const std::string& text) {
  const auto parts = split(text, ',');
  if (parts.size() != 3 && parts.size() != 4)
    throw plan::InputError(
        fmt::format("--costs {}: write forward, input gradient, weight gradient and, if it is not "
                    "0, the transfer: 1,1,1 or 1,1,1,0.1",
                    text));
  plan::ActionTimes times;
  times.forward = parse_list(parts[0], "forward");
  times.input_gradient = parse_list(parts[1], "input gradient");
  times.weight_gradient = parse_list(parts[2], "weight gradient");
  if (parts.size() == 4)
    times.transfer = parse_time(parts[3], "transfer");
  return times;
}

}  // namespace pipewright::cli
