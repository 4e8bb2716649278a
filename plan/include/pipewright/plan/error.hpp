#pragma once

// Errors that a user can act on. A broken promise inside our own code is an assert instead.

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright::plan {

/// What was given cannot be used: the command line prints the message and exits with 2.
/// A file's errors come all at once, one per line, each `file:line:column: /pointer: message`.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A file that cannot be read as what it should be: the text is wrong, not what it says.
class MalformedFile : public InputError {
 public:
  using InputError::InputError;
};

/// What was asked for is understood but cannot be: a deadlock, over memory, no such partition. The
/// message names what stands in the way; exit code 1.
class Infeasible : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The candidate that is close enough to what was written to be meant by it; null: none is.
const std::string* nearest_to(std::string_view written, const std::vector<std::string>& candidates);

/// `, did you mean "ranks"?` when a candidate is close enough to what was written, else nothing.
std::string did_you_mean(std::string_view written, const std::vector<std::string>& candidates);

/// The lines of one message; after the first fifty only how many more there are.
std::string listed_lines(const std::vector<std::string>& lines);

/// `a, b or c`, for messages that list what is possible.
std::string listed(const std::vector<std::string>& words);

}  // namespace pipewright::plan
