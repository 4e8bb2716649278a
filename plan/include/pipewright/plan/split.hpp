#pragma once

// A text as its parts between separators: one more than there are separators, some perhaps empty.

#include <string>
#include <string_view>
#include <vector>

namespace pipewright::plan {

std::vector<std::string> split(std::string_view text, char separator);

}  // namespace pipewright::plan
