#pragma once

// Number of buckets in which a stage's gradients are reduced if the reductions overlap with
// backwards, as in Megatron-LM's DistributedDataParallel.

#include <vector>

namespace pipewright::models {

struct GradientBuckets {
  double count = 1;
  double last = 1;  // fraction of the parameters in the last bucket, which no backward overlaps
};

/// Returns the minimum number of parameters per bucket for a group of `copies` devices.
double least_bucket(int copies);

/// `tensors`: sizes in parameters, in the order in which the backward completes them. The tensor
/// that fills a bucket closes it.
GradientBuckets gradient_buckets(const std::vector<double>& tensors, double least);

}  // namespace pipewright::models
