#pragma once

// The words of this process's command line, and how it becomes another program.

#include <string>
#include <vector>

namespace pipewright::cli {

/// The words that this process was started with, its name first.
std::vector<std::string> own_words();

/// This process becomes `program`, a path or a name that is looked for in PATH, with these words.
/// Returns only where that is not possible.
void become(const std::string& program, std::vector<std::string> words);

}  // namespace pipewright::cli
