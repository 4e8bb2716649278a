#pragma once

// Chooses which of a job's remedies to show if there is no room for all; the command line and the
// window show the same ones.

#include <vector>

#include "pipewright/trace/straggler/job_remedies.hpp"

namespace pipewright::trace {

/// Smallest fraction of a step that is shown, for a remedy's saving, a slowdown or a delay.
inline constexpr double min_shown_fraction = 0.0005;

/// Returns the five that save most, plus the best of each other kind. The pointers are valid as
/// long as `remedies`.
std::vector<const Remedy*> shown_remedies(const Remedies& remedies);

}  // namespace pipewright::trace
