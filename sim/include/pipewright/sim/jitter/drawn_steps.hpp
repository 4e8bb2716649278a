#pragma once

// Chooses the recorded step that each worker of a job takes in a sample.

#include <cstddef>
#include <cstdint>

#include "pipewright/sim/jitter/together.hpp"

namespace pipewright::sim {

struct DrawnSteps {
  int pipelines = 1;
  int ranks = 1;     // in each pipeline
  int recorded = 1;  // steps
  JitterCorrelation together{};
  /// 0: any recorded step each time. Otherwise samples form other records of as many steps, one
  /// after the other. Each consists of blocks of `block` consecutive recorded steps, sampled from a
  /// record that was itself sampled so, because the recorded one is only one of the possible
  /// records (Künsch, Ann. Stat. 17, 1989).
  int block = 0;

  /// Writes the step of each worker, pipeline by pipeline, to every `stride`-th place starting at
  /// `steps`. The result depends only on the seed and the sample's number.
  void draw(std::uint64_t seed, std::uint64_t number, int* steps, std::size_t stride = 1) const;

 private:
  int any_step(double chance) const;
  int step_of_other_record(std::uint64_t seed, std::uint64_t number, std::uint64_t stream) const;
};

}  // namespace pipewright::sim
