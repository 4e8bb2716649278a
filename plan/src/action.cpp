#include "pipewright/plan/action.hpp"

#include <fmt/format.h>

#include <charconv>

namespace pipewright::plan {
namespace {

/// Far above any real pipeline, and far below where counting stages or microbatches overflows.
constexpr int largest_index = 999'999;

bool is_index(int number) { return number >= 0 && number <= largest_index; }

}  // namespace

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
  const char* const end = text.data() + text.size();
  Action action;
  const auto [letter, bad_stage] = std::from_chars(text.data(), end, action.stage);
  if (bad_stage != std::errc() || letter == end || !is_index(action.stage))
    return {};
  switch (*letter) {
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
  const auto [rest, bad_microbatch] = std::from_chars(letter + 1, end, action.microbatch);
  if (bad_microbatch != std::errc() || rest != end || !is_index(action.microbatch))
    return {};
  return action;
}

}  // namespace pipewright::plan
