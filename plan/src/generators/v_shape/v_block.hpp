#pragma once

// Builds a V-shaped schedule by repeating the block of actions of one microbatch.

#include <array>
#include <vector>

#include "v_shape.hpp"

namespace pipewright::plan {

/// By rank and leg, the slot of unit length in which the first microbatch passes. Each further
/// microbatch follows six slots later. Two of the six slots are left for weight gradients.
using Block = std::vector<std::array<int, v_legs>>;

/// Builds the schedule that repeats a block (Qi et al. 2024, section 3: repeat, squeeze, reorder).
/// The peak of kept activations stays that of the block, and the bubbles at the start and the end
/// are closed.
Schedule repeat_block(const Block& block, int microbatches);

}  // namespace pipewright::plan
