#pragma once

// Runs work in a separate process, for a library that starts only once per process and aborts on
// bad input.

#include <functional>
#include <string>
#include <vector>

namespace pipewright::sim {

/// Runs `body` in a separate process and returns its result. Rethrows its InputError; if it aborts,
/// throws an InputError with what it wrote to stderr.
std::vector<double> in_child_process(const std::function<std::vector<double>()>& body);

/// Sets the message of the InputError to throw if the body does not survive its next operation. Set
/// an empty message after that operation.
void set_last_words(const std::string& message);

}  // namespace pipewright::sim
