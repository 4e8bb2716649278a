#include "pipewright/models/transformer/gradient_buckets.hpp"

#include <algorithm>

namespace pipewright::models {

double least_bucket(int copies) { return std::max(40e6, 1e6 * copies); }

GradientBuckets gradient_buckets(const std::vector<double>& tensors, double least) {
  double all = 0, open = 0, last = 0;
  int closed = 0;
  for (const double tensor : tensors) {
    all += tensor, open += tensor;
    if (open < least)
      continue;
    ++closed;
    last = open, open = 0;
  }
  if (all <= 0)
    return {};
  return {.count = std::max(1.0, closed + (open > 0 ? 1.0 : 0.0)),
          .last = (open > 0 ? open : last) / all};
}

}  // namespace pipewright::models
