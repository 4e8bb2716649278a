#pragma once

// torchtitan's split of equal layers over stages, in which the modules before and after the layers
// (embedding; norm and head) count like a number of layers.

#include <vector>

namespace pipewright::plan {

/// Returns the number of layers of each stage. The sum of layers, `input_weight` and
/// `output_weight` is split uniformly, the longer stages first. The first stage then gives up
/// `input_weight` layers and the last one `output_weight`. A single stage takes all. Throws
/// InputError if there are more stages than that sum, or if a weight does not fit into a shorter
/// stage.
std::vector<int> layer_split(int stages, int layers, int input_weight, int output_weight);

}  // namespace pipewright::plan
