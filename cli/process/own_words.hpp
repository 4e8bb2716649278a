#pragma once

// The arguments of this process, and its replacement by another program.

#include <string>
#include <vector>

namespace pipewright::cli {

/// Returns the arguments that this process was started with, its name first.
std::vector<std::string> own_words();

/// Replaces this process with `program`, a path or a name that is looked up in PATH, with these
/// arguments. Returns only if that is not possible.
void become(const std::string& program, std::vector<std::string> words);

}  // namespace pipewright::cli
