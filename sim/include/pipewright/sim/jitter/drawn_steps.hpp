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
  /// 0: any recorded step each time. Else draws make up other records of as many steps, one after
  /// the other: a block of so many recorded steps that follow each other, then another, drawn from
  /// a record that was itself drawn so, as the recorded one is but one of those that could have
  /// been (Künsch, Ann. Stat. 17, 1989).
  int block = 0;

  /// Writes the step of each worker, pipeline by pipeline, to every `stride`-th place from `steps`
  /// on. It depends on the seed and the draw's own number alone.
  void draw(std::uint64_t seed, std::uint64_t number, int* steps, std::size_t stride = 1) const;

 private:
  int any_step(double chance) const;
  int step_of_other_record(std::uint64_t seed, std::uint64_t number, std::uint64_t stream) const;
};

}  // namespace pipewright::sim
