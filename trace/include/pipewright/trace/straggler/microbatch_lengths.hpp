#pragma once

// Whether microbatches are of unequal length: then their forward and their backward are long or
// short together, which a slow machine or the noise of one does not make them.

#include "pipewright/trace/straggler/job_steps.hpp"

namespace pipewright::trace {

struct MicrobatchLengths {
  double spread = 0;       // standard deviation of a compute pair's time over its stage's mean
  double correlation = 0;  // of forward and backward of a microbatch on a stage
};

MicrobatchLengths microbatch_lengths(const JobSteps& steps);

}  // namespace pipewright::trace
