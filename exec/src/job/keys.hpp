#pragma once

// The names under which the ranks of a job find each other's words in its store.

#include <fmt/format.h>

#include <string>

namespace pipewright::exec::keys {

inline std::string beat(int rank) { return fmt::format("beat/{}", rank); }
inline std::string facts(int rank) { return fmt::format("facts/{}", rank); }

/// "<rank> <why>" once the job has failed. The word for "not yet" is a value: a key that is not
/// there cannot be read without waiting for it.
inline const std::string failure = "failure";
inline const std::string no_failure = "none";

/// Stands there once the job has done its work.
inline const std::string done = "done";

}  // namespace pipewright::exec::keys
