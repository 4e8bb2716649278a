#pragma once

// In how many sums a stage's gradients go where they overlap with backwards: in buckets, as those
// of Megatron-LM's DistributedDataParallel.

#include <vector>

namespace pipewright::models {

struct GradientBuckets {
  double count = 1;
  double last = 1;  // share of the parameters in the last one, which no backward is beside
};

/// Parameters that a bucket has at least, where so many devices sum them.
double least_bucket(int copies);

/// `tensors`: parameters of each, in the order in which the backward ends them. The one that fills
/// a bucket closes it.
GradientBuckets gradient_buckets(const std::vector<double>& tensors, double least);

}  // namespace pipewright::models
