#pragma once

// Parses the numbers of stages, microbatches and slots in the text of actions and instructions.

#include <optional>
#include <string_view>

namespace pipewright::plan {

/// Parses a number from 0 to 999,999 at the front of `text` and removes it. Returns nothing if
/// there is none.
std::optional<int> take_index(std::string_view& text);

}  // namespace pipewright::plan
