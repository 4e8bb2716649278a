#pragma once

// Which workers have their good and bad steps together: what is long everywhere at once costs a
// pipeline less than what meets one of them after the other.

#include "pipewright/models/measured/recorded_steps.hpp"

namespace pipewright::sim {

/// How often the workers of a job take the same step in a draw: as often as the seconds that they
/// compute in a step are correlated in the record, 0 where they are not at all or inversely.
struct Together {
  double pipelines = 0;  // the ranks of equal place in other pipelines; 0 where one was recorded
  double ranks = 0;      // those of one pipeline; at least as often as all pipelines are together
};

/// By the seconds of compute of each worker in each step. Correlations are those of all pairs
/// together: the sum of their covariances over the sum of the products of their deviations.
Together together_in(const models::RecordedSteps& record);

}  // namespace pipewright::sim
