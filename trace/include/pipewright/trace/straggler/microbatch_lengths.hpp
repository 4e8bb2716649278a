#pragma once

// Detects microbatches of unequal length. Their forward and backward are long or short together,
// which a slow machine or its noise would not cause.

#include "pipewright/trace/straggler/job_steps.hpp"

namespace pipewright::trace {

struct MicrobatchLengths {
  double spread = 0;       // standard deviation of a forward-backward pair's time over its stage's
                           // mean
  double correlation = 0;  // between forward and backward of a microbatch on a stage
};

MicrobatchLengths microbatch_lengths(const JobSteps& steps);

}  // namespace pipewright::trace
