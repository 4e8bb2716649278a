#pragma once

// A record laid over a job: which recorded factors each event of each pipeline takes, and which
// recorded step each worker takes in a draw.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pipewright/sim/jitter/drawn_steps.hpp"
#include "pipewright/sim/jitter/jitter.hpp"
#include "pipewright/sim/structure/structure.hpp"

namespace pipewright::sim {

class JobJitter {
 public:
  /// `copies` of each rank of the Structure; `block`: as DrawnSteps has it. Both must outlive it.
  JobJitter(const Structure& structure, int copies, const Jitter& jitter, int block = 0);

  int copies() const { return copies_; }
  /// So many pipelines have factors of their own; those after them have the same again.
  int alike() const { return alike_; }
  int ranks() const { return ranks_; }
  int workers() const { return copies_ * ranks_; }
  int worker(int copy, int rank) const { return copy * ranks_ + rank; }

  /// By the step of the event's worker; null: always 1. A sum over all pipelines is one event: its
  /// time is that of the first one.
  const double* factors(int copy, int event) const {
    return factors_[static_cast<std::size_t>(copy % alike_) * size_ +
                    static_cast<std::size_t>(event)];
  }

  const DrawnSteps& steps() const { return steps_; }
  /// Of a draw, as `StepCosts::event_factors` has them: a list for each copy.
  std::vector<double> event_factors(std::uint64_t seed, std::uint64_t number) const;

 private:
  const Structure& structure_;
  const int copies_, ranks_;
  const int alike_;
  const std::size_t size_;
  const DrawnSteps steps_;
  std::vector<const double*> factors_;
};

}  // namespace pipewright::sim
