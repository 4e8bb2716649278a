#pragma once

// A program that is started for what it prints.

#include <string>
#include <vector>

namespace pipewright::cli {

/// Throws what errno says.
[[noreturn]] void throw_errno(const std::string& what);

/// What the program prints on stdout; its messages pass through. `words`: its own name first.
/// Throws ProgramFailed, and loop::Stopped when the user asked to stop.
std::string output_of(const std::string& program, const std::vector<std::string>& words);

}  // namespace pipewright::cli
