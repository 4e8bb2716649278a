#pragma once

// Splits a text at a separator. There is one more part than there are separators; parts can be
// empty.

#include <string>
#include <string_view>
#include <vector>

namespace pipewright::plan {

std::vector<std::string> split(std::string_view text, char separator);

}  // namespace pipewright::plan
