#pragma once

// Errors that a user can act on. A broken promise inside our own code is an assert instead.

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright::plan {

/// An input that cannot be used: the command line prints the message and exits with 2. All errors
/// of a file are reported together, one per line, each `file:line:column: /pointer: message`.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A file whose text is not in the expected format, as opposed to a well-formed file with unusable
/// values.
class MalformedFile : public InputError {
 public:
  using InputError::InputError;
};

/// A valid request that cannot be fulfilled: a deadlock, too little memory, no such partition. The
/// message names the obstacle; the exit code is 1.
class Infeasible : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Returns the candidate that `written` most likely means (by edit distance), or null if none is
/// close enough.
const std::string* nearest_to(std::string_view written, const std::vector<std::string>& candidates);

/// Returns `, did you mean "ranks"?` if a candidate is close enough to `written`, else an empty
/// string.
std::string did_you_mean(std::string_view written, const std::vector<std::string>& candidates);

/// Joins lines into one message. After the first fifty lines, it states only how many more there
/// are.
std::string listed_lines(const std::vector<std::string>& lines);

/// Returns `a, b or c`, for messages that list the valid values.
std::string listed(const std::vector<std::string>& words);

}  // namespace pipewright::plan
