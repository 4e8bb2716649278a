#pragma once

// What the shards of a layer pass on among each other, found by running one of them by itself.

#include "layer_memory.hpp"

namespace pipewright::profiler {

/// As sums of equal size: so many in the forward and in the backward of a microbatch. Nothing of a
/// whole layer.
plan::ShardTraffic sums_of_shards(const Trial& trial);

}  // namespace pipewright::profiler
