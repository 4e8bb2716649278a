#pragma once

// The manual, made of the command line's own description.

#include <string>

#include "options/command_line/command.hpp"

namespace pipewright::cli {

/// The manual page, as troff of section 1.
std::string manual_page(const CommandLine& line);

}  // namespace pipewright::cli
