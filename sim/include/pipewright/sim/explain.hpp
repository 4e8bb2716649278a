#pragma once

// Why a rank stands still at an instant, in words.

#include <string>

#include "pipewright/sim/times.hpp"

namespace pipewright::sim {

/// One sentence: what the rank does then or, when it is idle, which action comes next, what that
/// waits for, and what the rank that makes it does meanwhile, from rank to rank up to one that
/// computes. Throws InputError for a rank that does not exist or a time outside the iteration.
std::string explain(const Structure& structure, const Times& times, int rank, double time);

}  // namespace pipewright::sim
