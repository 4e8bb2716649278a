#pragma once

// Starts a program and reads its output.

#include <string>
#include <vector>

namespace pipewright::cli {

/// Throws with the message of errno.
[[noreturn]] void throw_errno(const std::string& what);

/// Returns what the program prints on stdout; its messages pass through. `words` begins with its
/// own name. Throws ProgramFailed, and plan::Stopped if the user requested a stop.
std::string output_of(const std::string& program, const std::vector<std::string>& words);

}  // namespace pipewright::cli
