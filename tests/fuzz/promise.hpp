#pragma once

// What fuzz targets demand of readers. A target lets nothing but InputError, and Infeasible where
// an answer may be no, come from what it calls: any other exception ends the program.

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <type_traits>

#include "pipewright/plan/error.hpp"

namespace pipewright::fuzz {

inline void demand(bool holds, const char* what) {
  if (holds)
    return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

/// How many values were read so far: a target that never sees one checks nothing.
inline int values_read = 0;

/// What `read` gives; nothing when it refuses in words.
template <class Read>
std::optional<std::invoke_result_t<Read>> accepted(const Read& read) {
  try {
    std::optional<std::invoke_result_t<Read>> value = read();
    ++values_read;
    return value;
  } catch (const plan::InputError& error) {
    demand(error.what()[0] != '\0', "a refusal says why");
    return {};
  }
}

/// For what may follow from a sound value but need not be possible.
template <class Use>
void may_be_refused(const Use& use) {
  try {
    use();
  } catch (const plan::InputError& error) {
    demand(error.what()[0] != '\0', "a refusal says why");
  } catch (const plan::Infeasible& error) {
    demand(error.what()[0] != '\0', "a negative answer says why");
  }
}

}  // namespace pipewright::fuzz
