#pragma once

// A record applied to a job: the recorded factors of each event in each pipeline, and the recorded
// step that each worker takes in a sample.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pipewright/sim/jitter/drawn_steps.hpp"
#include "pipewright/sim/jitter/jitter.hpp"
#include "pipewright/sim/structure/structure.hpp"

namespace pipewright::sim {

class JobJitter {
 public:
  /// Applies the record to `copies` pipelines of the Structure; `block` is DrawnSteps::block.
  /// `structure` and `jitter` must outlive it.
  JobJitter(const Structure& structure, int copies, const Jitter& jitter, int block = 0);

  int copies() const { return copies_; }
  /// Returns the number of pipelines that have their own factors; later pipelines repeat them.
  int alike() const { return alike_; }
  int ranks() const { return ranks_; }
  int workers() const { return copies_ * ranks_; }
  int worker(int copy, int rank) const { return copy * ranks_ + rank; }

  /// Returns the factors by the step of the event's worker; null: always 1. An all-reduce over all
  /// pipelines is one event that takes the time of the first pipeline's.
  const double* factors(int copy, int event) const {
    return factors_[static_cast<std::size_t>(copy % alike_) * size_ +
                    static_cast<std::size_t>(event)];
  }

  const DrawnSteps& steps() const { return steps_; }
  /// Returns the factors of one sample in the form of `StepCosts::event_factors`: a list for each
  /// pipeline.
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
