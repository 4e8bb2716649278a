#include "pipewright/plan/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pipewright/plan/error.hpp"

namespace pipewright::plan {
namespace {

std::string joined(const std::vector<Action>& actions, std::string_view separator) {
  std::string text;
  for (const Action& action : actions) {
    if (!text.empty())
      text += separator;
    text += to_string(action);
  }
  return text;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '"'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '"' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

}  // namespace

std::string to_string(const Schedule& schedule) {
  std::string text;
  for (const auto& actions : schedule.ranks)
    text += joined(actions, " ") + "\n";
  return text;
}

std::string to_csv(const Schedule& schedule) {
  std::string text;
  for (const auto& actions : schedule.ranks)
    text += joined(actions, ",") + "\n";
  return text;
}

Schedule parse_csv(std::string_view text, const std::string& name) {
  Schedule schedule;
  std::vector<std::string> errors;
  int row = 0;
  while (!text.empty()) {
    ++row;
    const auto line_end = text.find('\n');
    std::string_view line = text.substr(0, line_end);
    text = line_end == std::string_view::npos ? "" : text.substr(line_end + 1);
    auto& actions = schedule.ranks.emplace_back();
    for (int column = 1;; ++column) {
      const auto comma = line.find(',');
      const std::string_view cell = trimmed(line.substr(0, comma));
      if (const auto action = parse_action(cell)) {
        schedule.microbatches = std::max(schedule.microbatches, action->microbatch + 1);
        actions.push_back(*action);
      } else if (!cell.empty()) {
        errors.push_back(fmt::format(
            "{}:{}:{}: \"{}\" is no action: write stage, one of F B I W R, microbatch, such as 3F0",
            name, row, column, cell));
      }
      if (comma == std::string_view::npos)
        break;
      line = line.substr(comma + 1);
    }
  }
  if (schedule.microbatches == 0 && errors.empty())
    errors.push_back(fmt::format("{}:1:1: no action in the file", name));
  if (!errors.empty())
    throw InputError(fmt::format("{}", fmt::join(errors, "\n")));
  return schedule;
}

int stage_count(const Schedule& schedule) {
  int last = -1;
  for (const auto& actions : schedule.ranks)
    for (const Action& action : actions)
      last = std::max(last, action.stage);
  return last + 1;
}

std::vector<int> rank_of_stage(const Schedule& schedule) {
  std::vector<int> ranks(static_cast<std::size_t>(stage_count(schedule)), -1);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank)
    for (const Action& action : schedule.ranks[rank]) {
      int& owner = ranks[static_cast<std::size_t>(action.stage)];
      if (owner < 0)
        owner = static_cast<int>(rank);
    }
  return ranks;
}

}  // namespace pipewright::plan
