#pragma once

// Validates UTF-8 in files that other programs wrote.

#include <string_view>

namespace pipewright::plan {

/// Returns true if the text is well-formed UTF-8 (Unicode, table 3-7), so that it can be written as
/// JSON.
bool is_utf8(std::string_view text);

}  // namespace pipewright::plan
