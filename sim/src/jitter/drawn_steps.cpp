#include "pipewright/sim/jitter/drawn_steps.hpp"

#include <algorithm>

#include "structure/uniform.hpp"

namespace pipewright::sim {

/// Every choice has a number of its own: of the job and of each pipeline whether those below go
/// together, and by which step; of each rank its own step.
void DrawnSteps::draw(std::uint64_t seed, std::uint64_t number, int* steps,
                      std::size_t stride) const {
  std::uint64_t next = number * static_cast<std::uint64_t>(2 + pipelines * (2 + ranks));
  const auto chance = [&] { return uniform(seed, next++); };
  const auto step = [&] {
    return std::min(recorded - 1, static_cast<int>((1 - chance()) * recorded));
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
