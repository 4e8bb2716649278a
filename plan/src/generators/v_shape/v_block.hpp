#pragma once

// A V-shaped schedule made by repeating the actions of one microbatch.

#include <array>
#include <vector>

#include "v_shape.hpp"

namespace pipewright::plan {

/// The slot, of unit length, in which the first microbatch passes each rank on each leg. Every
/// further microbatch comes six slots later; two of six are left for weight gradients.
using Block = std::vector<std::array<int, v_legs>>;

/// The schedule that repeats a block (Qi et al. 2024, section 3: repeat, squeeze, reorder): the
/// block's peak of kept activations is held, and the bubbles of its start and end are closed.
Schedule repeat_block(const Block& block, int microbatches);

}  // namespace pipewright::plan
