#pragma once

// Which sample stands at which place of a training that takes each once in an epoch.

#include <cstdint>

#include "pipewright/exec/data/dataset.hpp"

namespace pipewright::exec {

/// `place` of 0 to `count` − 1 in an order drawn from `key`, a different one for each place: four
/// rounds of a Feistel network, and on until it is one of them (Black and Rogaway, CT-RSA 2002). No
/// list is kept.
std::int64_t shuffled(std::int64_t place, std::int64_t count, std::uint64_t key);

/// The number of a sample of a microbatch, of `count` samples, in the order of its epoch.
std::int64_t sample_at(int step, int microbatch, int sample, const BatchShape& shape,
                       std::int64_t count);

}  // namespace pipewright::exec
