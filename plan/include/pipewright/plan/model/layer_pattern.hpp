#pragma once

// Which layers have experts, as Megatron's --moe-layer-freq says it.

#include <string_view>
#include <vector>

namespace pipewright::plan {

/// `2`: every second layer from the first; or a list of as many 0 and 1 as there are layers, in
/// Python's words: `([0]*3+[1]*58)`. Throws InputError.
std::vector<bool> layer_pattern(std::string_view text, int layers);

}  // namespace pipewright::plan
