#pragma once

// One unit of computation on one rank, and its short text: "2F0" is the forward of microbatch 0
// through stage 2. The notation is that of torch.distributed.pipelining, so that schedule files are
// exchangeable both ways: B is the full backward, I the input gradient, W the weight gradient.

#include <optional>
#include <string>
#include <string_view>

namespace pipewright::plan {

enum class ActionKind { Forward, Backward, InputGradient, WeightGradient, Recompute };

struct Action {
  ActionKind kind = ActionKind::Forward;
  int stage = 0;
  int microbatch = 0;
  friend bool operator==(const Action&, const Action&) = default;
};

/// F, B, I, W or R.
char letter_of(ActionKind kind);

std::string to_string(const Action& action);

/// Nothing when the text is no action.
std::optional<Action> parse_action(std::string_view text);

}  // namespace pipewright::plan
