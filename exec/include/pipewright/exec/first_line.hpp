#pragma once

// Messages for people.

#include <string>

namespace pipewright::exec {

/// LibTorch's messages carry a C++ stack trace after the first line.
inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace pipewright::exec
