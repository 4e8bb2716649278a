#pragma once

// Whether a text can be written as JSON.

#include <string_view>

namespace pipewright::plan {

/// Whether it is well-formed UTF-8 (Unicode, table 3-7): then it can be written as JSON.
bool is_utf8(std::string_view text);

}  // namespace pipewright::plan
