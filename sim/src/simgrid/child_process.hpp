#pragma once

// Work in a process of its own, for a library that starts only once in a process and aborts on bad
// input.

#include <functional>
#include <string>
#include <vector>

namespace pipewright::sim {

/// Runs `body` in a process of its own and returns what it returned. An InputError of it is thrown
/// here; if it aborts, what it wrote to stderr is thrown as InputError.
std::vector<double> in_child_process(const std::function<std::vector<double>()>& body);

/// Called by a body that may not survive what it does next: the InputError to throw if so. Empty
/// once that is over.
void set_last_words(const std::string& message);

}  // namespace pipewright::sim
