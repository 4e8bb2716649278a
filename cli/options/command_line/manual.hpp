#pragma once

// Generates the manual from the description of the command line.

#include <string>

#include "options/command_line/command.hpp"

namespace pipewright::cli {

/// Returns the manual page as troff of section 1.
std::string manual_page(const CommandLine& line);

}  // namespace pipewright::cli
