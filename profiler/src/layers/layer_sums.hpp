#pragma once

// Measures a layer's tensor-parallel communication by running one of its ranks alone.

#include "layer_memory.hpp"

namespace pipewright::profiler {

/// Returns the communication as all-reduces of equal size: how many in the forward and in the
/// backward of a microbatch. Zero for a layer that is not partitioned.
plan::PartitionCollectives sums_of_shards(const Trial& trial);

}  // namespace pipewright::profiler
