#pragma once

// Many days of one training: iterations whose durations are drawn from what was recorded, and what
// most of them stay below.

#include <cstdint>
#include <vector>

#include "pipewright/sim/jitter/job_jitter.hpp"
#include "pipewright/sim/structure/step_costs.hpp"
#include "pipewright/sim/structure/structure.hpp"

namespace pipewright::sim {

struct DrawOptions {
  int count = 10'000;
  std::uint64_t seed = 0;
};

/// Throws InputError for fewer draws than one and for more than 100 million.
void require_usable(const DrawOptions& options);

/// Iterations in seconds, rising.
class Draws {
 public:
  explicit Draws(std::vector<double> iterations);

  const std::vector<double>& sorted() const { return sorted_; }
  double mean() const;
  /// The shortest that at least this part of them does not exceed: a draw, not between two.
  double percentile(double fraction) const;

 private:
  std::vector<double> sorted_;
};

/// Every pipeline has durations of its own. On all cores, and the same for any number of them.
/// Throws InputError for costs and options that cannot be used.
Draws draw_iterations(const Structure& structure, const StepCosts& costs, const Jitter& jitter,
                      const DrawOptions& options);

/// The same in the order of their numbers, of workers that take the steps that `jitter` says.
std::vector<double> iterations_drawn(const Structure& structure, const StepCosts& costs,
                                     const JobJitter& jitter, const DrawOptions& options);

}  // namespace pipewright::sim
