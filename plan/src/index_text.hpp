#pragma once

// The numbers of stages, microbatches and slots inside the text of actions and instructions.

#include <optional>
#include <string_view>

namespace pipewright::plan {

/// Takes a number from 0 to 999,999 off the front of `text`; nothing when none stands there.
std::optional<int> take_index(std::string_view& text);

}  // namespace pipewright::plan
