#pragma once

// Properties that fuzz targets demand of readers. A target accepts only InputError from the code
// that it calls, and Infeasible where a negative result is possible; any other exception ends the
// program.

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <type_traits>

#include "pipewright/plan/error.hpp"

namespace pipewright::fuzz {

inline void demand(bool holds, const char* what) {
  if (holds)
    return;
  std::fprintf(stderr, "violated property: %s\n", what);
  std::abort();
}

/// Number of values that were read so far: a target that never reads one checks nothing.
inline int values_read = 0;

/// Returns the result of `read`, or nothing if it rejects the input with a message.
template <class Read>
std::optional<std::invoke_result_t<Read>> accepted(const Read& read) {
  try {
    std::optional<std::invoke_result_t<Read>> value = read();
    ++values_read;
    return value;
  } catch (const plan::InputError& error) {
    demand(error.what()[0] != '\0', "a rejection has a message");
    return {};
  }
}

/// Runs an operation on a valid value that may still fail with a message.
template <class Use>
void may_be_refused(const Use& use) {
  try {
    use();
  } catch (const plan::InputError& error) {
    demand(error.what()[0] != '\0', "a rejection has a message");
  } catch (const plan::Infeasible& error) {
    demand(error.what()[0] != '\0', "an infeasible result has a message");
  }
}

}  // namespace pipewright::fuzz
