#pragma once

// Sampled iterations of one training: durations are sampled from recorded steps, to obtain
// percentiles of the step time.

#include <cstdint>
#include <vector>

#include "pipewright/sim/jitter/job_jitter.hpp"
#include "pipewright/sim/structure/step_costs.hpp"
#include "pipewright/sim/structure/structure.hpp"

namespace pipewright::sim {

struct SamplingOptions {
  int count = 10'000;
  std::uint64_t seed = 0;
};

/// Throws InputError for fewer than one sample and for more than 100 million.
void require_usable(const SamplingOptions& options);

/// Iterations in seconds, in ascending order.
class Draws {
 public:
  explicit Draws(std::vector<double> iterations);

  const std::vector<double>& sorted() const { return sorted_; }
  double mean() const;
  /// Returns the shortest iteration that at least this fraction of the iterations does not exceed:
  /// one of the samples, not an interpolated value.
  double percentile(double fraction) const;

 private:
  std::vector<double> sorted_;
};

/// Samples iterations. Every pipeline has its own durations. Uses all cores; the result does not
/// depend on their number. Throws InputError for costs and options that cannot be used.
Draws draw_iterations(const Structure& structure, const StepCosts& costs, const Jitter& jitter,
                      const SamplingOptions& options);

/// Returns iterations in the order of their sample numbers, for workers that take the steps given
/// by `jitter`.
std::vector<double> iterations_drawn(const Structure& structure, const StepCosts& costs,
                                     const JobJitter& jitter, const SamplingOptions& options);

}  // namespace pipewright::sim
