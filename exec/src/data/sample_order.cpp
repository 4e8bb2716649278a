#include "sample_order.hpp"

#include <bit>
#include <utility>

#include "pipewright/exec/hash.hpp"

namespace pipewright::exec {

std::int64_t shuffled(std::int64_t place, std::int64_t count, std::uint64_t key) {
  constexpr int rounds = 4;
  const int half = (std::bit_width(static_cast<std::uint64_t>(count - 1)) + 1) / 2;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  auto at = static_cast<std::uint64_t>(place);
  do {
    std::uint64_t left = at >> half, right = at & mask;
    for (int round = 0; round < rounds; ++round) {
      const std::uint64_t turned =
          hash_of({static_cast<std::int64_t>(key), round, static_cast<std::int64_t>(right)});
      left = std::exchange(right, left ^ (turned & mask));
    }
    at = left << half | right;
  } while (at >= static_cast<std::uint64_t>(count));
  return static_cast<std::int64_t>(at);
}

std::int64_t sample_at(int step, int microbatch, int sample, const BatchShape& shape,
                       std::int64_t count) {
  const std::int64_t number =
      (std::int64_t{step} * shape.microbatches + microbatch) * shape.microbatch_size + sample;
  return shuffled(number % count, count, hash_of({shape.seed, number / count}));
}

}  // namespace pipewright::exec
