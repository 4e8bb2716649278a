#pragma once

// Correlation of step times between workers: a delay of all workers at once costs a pipeline less
// than delays of one worker after the other.

#include "pipewright/models/measured/recorded_steps.hpp"

namespace pipewright::sim {

/// The probabilities that workers of a job take the same recorded step in a sample. They equal the
/// correlation of the workers' compute seconds per step in the record, and are 0 if that is not
/// positive.
struct JitterCorrelation {
  double pipelines = 0;  // ranks of equal place in other pipelines; 0 if only one pipeline was
                         // recorded
  double ranks = 0;      // ranks of one pipeline; at least `pipelines`
};

/// Returns the correlations of each worker's compute seconds per step. They are pooled over all
/// pairs: the sum of their covariances over the sum of the products of their deviations.
JitterCorrelation together_in(const models::RecordedSteps& record);

}  // namespace pipewright::sim
