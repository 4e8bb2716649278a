#pragma once

// The keys of a job's store.

#include <fmt/format.h>

#include <string>

namespace pipewright::exec::keys {

inline std::string beat(int rank) { return fmt::format("beat/{}", rank); }
inline std::string facts(int rank) { return fmt::format("facts/{}", rank); }

/// "<rank> <why>" once the job has failed, `no_failure` before. A value stands for "not yet"
/// because reading a missing key blocks.
inline const std::string failure = "failure";
inline const std::string no_failure = "none";

/// Set once the job has done its work.
inline const std::string done = "done";

}  // namespace pipewright::exec::keys
