#pragma once

// The order of samples in a training that uses each sample once in an epoch.

#include <cstdint>

#include "pipewright/exec/data/dataset.hpp"

namespace pipewright::exec {

/// Returns the sample at `place`, 0 to `count` − 1, of a permutation drawn from `key`: four rounds
/// of a Feistel network, repeated until the value is below `count` (Black and Rogaway, CT-RSA
/// 2002). Stores no list.
std::int64_t shuffled(std::int64_t place, std::int64_t count, std::uint64_t key);

/// Returns the number of one of a microbatch's samples, out of `count` samples, in the order of its
/// epoch.
std::int64_t sample_at(int step, int microbatch, int sample, const BatchShape& shape,
                       std::int64_t count);

}  // namespace pipewright::exec
