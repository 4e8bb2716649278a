#pragma once

// How long work ends when it is asked to stop.

#include <cstddef>
#include <functional>

namespace pipewright::plan {

/// Thrown where somebody's stop flag ends the work.
struct Stopped {};

/// Told now and then how much is done, and of how much. Where it answers false, the work ends.
using GoesOn = std::function<bool(std::size_t done, std::size_t of)>;

}  // namespace pipewright::plan
