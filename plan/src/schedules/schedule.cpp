#include "pipewright/plan/schedules/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "json/csv_rows.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/fused_cell.hpp"

namespace pipewright::plan {
namespace {

std::string joined(const std::vector<Action>& actions, char separator) {
  std::string text;
  for (std::size_t at = 0; at < actions.size(); ++at) {
    const bool fused = actions[at].fused_with_next && at + 1 < actions.size();
    if (!text.empty())
      text += separator;
    const std::string first = to_string(actions[at]);
    text += fused ? fused_cell(first, to_string(actions[++at])) : first;
  }
  return text;
}

/// Appends the actions of one cell. Returns false if the cell is malformed.
bool read_cell(std::string_view cell, std::vector<Action>& actions) {
  if (cell.empty())
    return true;
  if (const auto action = parse_action(cell)) {
    actions.push_back(*action);
    return true;
  }
  const auto members = fused_members(cell);
  if (members.size() != 2)
    return false;
  auto first = parse_action(members[0]);
  const auto second = parse_action(members[1]);
  if (!first || !second)
    return false;
  first->fused_with_next = true;
  actions.push_back(*first);
  actions.push_back(*second);
  return true;
}

}  // namespace

std::vector<std::string> cells(const std::vector<Action>& actions) {
  std::vector<std::string> row;
  if (actions.empty())
    return row;
  const std::string text = joined(actions, ',');
  const auto rows = csv_rows(text);
  for (const std::string_view cell : rows.front())
    row.emplace_back(cell);
  return row;
}

std::string to_string(const Schedule& schedule) {
  std::string text;
  for (const auto& actions : schedule.ranks)
    text += joined(actions, ' ') + "\n";
  return text;
}

std::string to_csv(const Schedule& schedule) {
  std::string text;
  for (const auto& actions : schedule.ranks)
    text += joined(actions, ',') + "\n";
  return text;
}

Schedule parse_csv(std::string_view text, const std::string& name) {
  Schedule schedule;
  std::vector<std::string> errors;
  for (const auto& row : csv_rows(text)) {
    auto& actions = schedule.ranks.emplace_back();
    for (std::size_t column = 0; column < row.size(); ++column)
      if (!read_cell(row[column], actions))
        errors.push_back(fmt::format(
            "{}:{}:{}: \"{}\" is not an action: write stage, one of F B I W R, microbatch, such as "
            "3F0, or a fused pair, such as (1F2;0B1)OVERLAP_F_B",
            name, schedule.ranks.size(), column + 1, row[column]));
    for (const Action& action : actions)
      schedule.microbatches = std::max(schedule.microbatches, action.microbatch + 1);
  }
  if (schedule.microbatches == 0 && errors.empty())
    errors.push_back(fmt::format("{}:1:1: no action in the file", name));
  if (!errors.empty())
    throw MalformedFile(listed_lines(errors));
  return schedule;
}

int stage_count(const Schedule& schedule) {
  int last = -1;
  for (const auto& actions : schedule.ranks)
    for (const Action& action : actions)
      last = std::max(last, action.stage);
  return last + 1;
}

bool is_forward_only(const Schedule& schedule) {
  for (const auto& actions : schedule.ranks)
    for (const Action& action : actions)
      if (action.kind != ActionKind::Forward)
        return false;
  return true;
}

}  // namespace pipewright::plan
