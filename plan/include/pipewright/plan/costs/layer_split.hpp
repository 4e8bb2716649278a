#pragma once

// torchtitan's split of equal layers over stages, where what is before and behind the layers
// (embedding, and norm with head) counts like some layers.

#include <vector>

namespace pipewright::plan {

/// Layers of each stage. Layers, `input_weight` and `output_weight` together are split uniformly,
/// the longer stages first; the first stage then gives up `input_weight` layers and the last one
/// `output_weight`. One stage takes all. Throws InputError when there are more stages than that
/// comes to, or when a weight does not fit into a shorter stage.
std::vector<int> layer_split(int stages, int layers, int input_weight, int output_weight);

}  // namespace pipewright::plan
