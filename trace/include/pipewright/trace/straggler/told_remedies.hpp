#pragma once

// Which of a job's remedies are told where there is not the room for all: the shell's table and the
// window have the same.

#include <vector>

#include "pipewright/trace/straggler/job_remedies.hpp"

namespace pipewright::trace {

/// Parts of a step below this are not told: of what a remedy saves, a slowdown, a delay.
inline constexpr double least_told = 0.0005;

/// The five that save most, and the best of each kind more; valid as long as `remedies`.
std::vector<const Remedy*> told_remedies(const Remedies& remedies);

}  // namespace pipewright::trace
