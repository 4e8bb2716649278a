#pragma once

// Parser for Megatron-LM's --moe-layer-freq, which selects the layers that have experts.

#include <string_view>
#include <vector>

namespace pipewright::plan {

/// Returns true for each of the `layers` layers that has experts. `text` is a number (`2`: every
/// second layer, starting with the first) or a Python list of 0 and 1 with one entry per layer:
/// `([0]*3+[1]*58)`. Throws InputError if it is neither, or if the list has another length.
std::vector<bool> layer_pattern(std::string_view text, int layers);

}  // namespace pipewright::plan
