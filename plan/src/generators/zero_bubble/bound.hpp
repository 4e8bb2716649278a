#pragma once

// A lower bound on the length of a zero-bubble schedule.

#include "problem.hpp"

namespace pipewright::plan::zero_bubble {

/// Returns a longest span that no orders can undercut. The proof is in the source file.
double lower_bound(const Problem& problem);

}  // namespace pipewright::plan::zero_bubble
