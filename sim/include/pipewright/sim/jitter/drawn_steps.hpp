#pragma once

// Which recorded step each worker of a job takes in a draw.

#include <cstddef>
#include <cstdint>

#include "pipewright/sim/jitter/together.hpp"

namespace pipewright::sim {

struct DrawnSteps {
  int pipelines = 1;
  int ranks = 1;     // of each
  int recorded = 1;  // steps
  Together together{};

  /// Writes the step of each worker, pipeline by pipeline, to every `stride`-th place from `steps`
  /// on. It depends on the seed and the draw's own number alone.
  void draw(std::uint64_t seed, std::uint64_t number, int* steps, std::size_t stride = 1) const;
};

}  // namespace pipewright::sim
