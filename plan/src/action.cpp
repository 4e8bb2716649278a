#include "pipewright/plan/action.hpp"

#include <charconv>

#include <fmt/format.h>

namespace pipewright::plan {

char letter_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::Forward: return 'F';
    case ActionKind::Backward: return 'B';
    case ActionKind::InputGradient: return 'I';
    case ActionKind::WeightGradient: return 'W';
    case ActionKind::Recompute: return 'R';
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
  if (bad_stage != std::errc() || letter == end || action.stage < 0) return {};
  switch (*letter) {
    case 'F': action.kind = ActionKind::Forward; break;
    case 'B': action.kind = ActionKind::Backward; break;
    case 'I': action.kind = ActionKind::InputGradient; break;
    case 'W': action.kind = ActionKind::WeightGradient; break;
    case 'R': action.kind = ActionKind::Recompute; break;
    default: return {};
  }
  const auto [rest, bad_microbatch] = std::from_chars(letter + 1, end, action.microbatch);
  if (bad_microbatch != std::errc() || rest != end || action.microbatch < 0) return {};
  return action;
}

}  // namespace pipewright::plan
