#pragma once

// Parser for Megatron-LM's --moe-layer-freq, which says which layers have experts.

#include <string_view>
#include <vector>

namespace pipewright::plan {

/// Parses either a number (`2`: every second layer, starting with the first) or a Python list of 0
/// and 1 with one entry per layer: `([0]*3+[1]*58)`. Throws InputError.
std::vector<bool> layer_pattern(std::string_view text, int layers);

}  // namespace pipewright::plan
