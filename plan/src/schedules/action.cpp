#include "pipewright/plan/schedules/action.hpp"

#include <fmt/format.h>

#include <charconv>

#include "index_text.hpp"

namespace pipewright::plan {
namespace {

/// Far above any real pipeline, and far below an overflow in counting stages or microbatches.
constexpr int largest_index = 999'999;

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

}  // namespace

std::optional<int> take_index(std::string_view& text) {
  int number = 0;
  if (text.empty() || !is_digit(text.front()))
    return {};  // from_chars would accept a sign
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (bad != std::errc() || number > largest_index)
    return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

char letter_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::Forward:
      return 'F';
    case ActionKind::Backward:
      return 'B';
    case ActionKind::InputGradient:
      return 'I';
    case ActionKind::WeightGradient:
      return 'W';
    case ActionKind::Recompute:
      return 'R';
  }
  return '?';
}

std::string to_string(const Action& action) {
  return fmt::format("{}{}{}", action.stage, letter_of(action.kind), action.microbatch);
}

std::optional<Action> parse_action(std::string_view text) {
  Action action;
  const auto stage = take_index(text);
  if (!stage || text.empty())
    return {};
  action.stage = *stage;
  switch (text.front()) {
    case 'F':
      action.kind = ActionKind::Forward;
      break;
    case 'B':
      action.kind = ActionKind::Backward;
      break;
    case 'I':
      action.kind = ActionKind::InputGradient;
      break;
    case 'W':
      action.kind = ActionKind::WeightGradient;
      break;
    case 'R':
      action.kind = ActionKind::Recompute;
      break;
    default:
      return {};
  }
  text.remove_prefix(1);
  const auto microbatch = take_index(text);
  if (!microbatch || !text.empty())
    return {};
  action.microbatch = *microbatch;
  return action;
}

}  // namespace pipewright::plan
