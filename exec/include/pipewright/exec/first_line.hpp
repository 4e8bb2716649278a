#pragma once

// Shortens messages of LibTorch for people to read.

#include <string>

namespace pipewright::exec {

/// Returns the first line of a text. LibTorch's messages carry a C++ stack trace after it.
inline std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace pipewright::exec
