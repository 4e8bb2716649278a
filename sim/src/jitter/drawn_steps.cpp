#include "pipewright/sim/jitter/drawn_steps.hpp"

#include <algorithm>

#include "structure/uniform.hpp"

namespace pipewright::sim {
namespace {

constexpr std::uint64_t of_blocks = 0x626c6f636b73U;  // so that block numbers differ from samples'
                                                      // numbers

}  // namespace

int DrawnSteps::any_step(double chance) const {
  return std::min(recorded - 1, static_cast<int>((1 - chance) * recorded));
}

/// Each stream of choices (of the job, a pipeline, a rank) has its own blocks; stream 0, the blocks
/// of the record that they are sampled from, is the same for all.
int DrawnSteps::step_of_other_record(std::uint64_t seed, std::uint64_t number,
                                     std::uint64_t stream) const {
  const auto steps = static_cast<std::uint64_t>(recorded), size = static_cast<std::uint64_t>(block);
  const std::uint64_t blocks = (steps + size - 1) / size;
  const auto streams = static_cast<std::uint64_t>(2 + pipelines * (1 + ranks));
  const auto in_blocks = [&](std::uint64_t at, std::uint64_t own) {
    const std::uint64_t which = (number / steps * streams + own) * blocks + at / size;
    const int first = any_step(uniform(seed + of_blocks, which));
    return (static_cast<std::uint64_t>(first) + at % size) % steps;
  };
  return static_cast<int>(in_blocks(in_blocks(number % steps, stream), 0));
}

/// Samples the steps. Every choice has its own number: the job and each pipeline choose whether
/// their members take the same step, and which; each rank chooses its own step.
void DrawnSteps::draw(std::uint64_t seed, std::uint64_t number, int* steps,
                      std::size_t stride) const {
  std::uint64_t next = number * static_cast<std::uint64_t>(2 + pipelines * (2 + ranks));
  std::uint64_t stream = 0;
  const auto chance = [&] { return uniform(seed, next++); };
  const auto step = [&] {
    const double own = chance();
    return block > 0 ? step_of_other_record(seed, number, ++stream) : any_step(own);
  };
  const bool all_together = chance() <= together.pipelines;
  const int of_all = step();
  const double ranks_too =
      together.pipelines < 1 ? (together.ranks - together.pipelines) / (1 - together.pipelines) : 1;
  for (int pipeline = 0; pipeline < pipelines; ++pipeline) {
    const bool pipeline_together = chance() <= ranks_too;
    const int of_pipeline = step();
    for (int rank = 0; rank < ranks; ++rank) {
      const int own = step();
      *steps = all_together ? of_all : pipeline_together ? of_pipeline : own;
      steps += stride;
    }
  }
}

}  // namespace pipewright::sim
