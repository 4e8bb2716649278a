#pragma once

// One unit of computation on one rank, and its short text: "2F0" is the forward of microbatch 0
// through stage 2. The notation is that of torch.distributed.pipelining, so that schedule files can
// be exchanged both ways: B is the full backward, I the input gradient, W the weight gradient.

#include <optional>
#include <string>
#include <string_view>

namespace pipewright::plan {

enum class ActionKind { Forward, Backward, InputGradient, WeightGradient, Recompute };

struct Action {
  ActionKind kind = ActionKind::Forward;
  int stage = 0;
  int microbatch = 0;
  /// Runs together with the next action of the list, as one fused unit: "(1F2;0B1)OVERLAP_F_B".
  bool fused_with_next = false;
  friend bool operator==(const Action&, const Action&) = default;
};

/// Returns F, B, I, W or R.
char letter_of(ActionKind kind);

/// Returns true if the action computes the gradient that the previous stage needs.
constexpr bool makes_input_gradient(ActionKind kind) {
  return kind == ActionKind::Backward || kind == ActionKind::InputGradient;
}
/// Returns true if the action adds to the gradients of the weights.
constexpr bool makes_weight_gradient(ActionKind kind) {
  return kind == ActionKind::Backward || kind == ActionKind::WeightGradient;
}

/// Returns the text of the action alone, "1F2", even if it is fused.
std::string to_string(const Action& action);

/// Parses an action's text. Returns nothing if it is not an action.
std::optional<Action> parse_action(std::string_view text);

}  // namespace pipewright::plan
