#include "options/schedule_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/split.hpp"

namespace pipewright::cli {
namespace {

plan::Seconds parse_time(const std::string& text, const char* what) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, bad] = std::from_chars(text.data(), end, value);
  if (bad != std::errc() || stop != end || !std::isfinite(value) || value < 0 || value > 1e12)
    throw plan::InputError(fmt::format(
        "--costs: \"{}\" is not a valid {} time: write a number from 0 to 1e12, or one per "
        "stage separated by /",
        text, what));
  return {value};
}

std::vector<plan::Seconds> parse_list(const std::string& text, const char* what) {
  std::vector<plan::Seconds> list;
  for (const std::string& part : plan::split(text, '/'))
    list.push_back(parse_time(part, what));
  return list;
}

}  // namespace

plan::ScheduleCosts parse_costs(const std::string& text) {
  const auto parts = plan::split(text, ',');
  if (parts.size() != 3 && parts.size() != 4)
    throw plan::InputError(
        fmt::format("--costs {}: write forward, input gradient, weight gradient and, if it is not "
                    "0, the transfer: 1,1,1 or 1,1,1,0.1",
                    text));
  const auto forward = parse_list(parts[0], "forward");
  const auto input_gradient = parse_list(parts[1], "input gradient");
  const auto weight_gradient = parse_list(parts[2], "weight gradient");
  const std::size_t stages =
      std::max({forward.size(), input_gradient.size(), weight_gradient.size()});
  const auto of = [&](const std::vector<plan::Seconds>& list, std::size_t stage) {
    if (list.size() != 1 && list.size() != stages)
      throw plan::InputError(
          fmt::format("--costs {}: there are times for {} stages and for {}: write one time for "
                      "all, or equally many in each list",
                      text, stages, list.size()));
    return list[list.size() == 1 ? 0 : stage];
  };
  plan::ScheduleCosts costs{.stages = {}};
  for (std::size_t stage = 0; stage < stages; ++stage)
    costs.stages.push_back(
        {of(forward, stage), of(input_gradient, stage), of(weight_gradient, stage)});
  if (parts.size() == 4)
    costs.transfer = parse_time(parts[3], "transfer");
  return costs;
}

}  // namespace pipewright::cli
