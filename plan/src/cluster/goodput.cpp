#include "pipewright/plan/cluster/goodput.hpp"

#include <cmath>

namespace pipewright::plan {

Seconds between_failures(Seconds of_a_device, int devices) { return {of_a_device.value / devices}; }

Seconds best_checkpoint_interval(const FailureCosts& costs) {
  return {std::sqrt(2 * costs.checkpoint.value * costs.between_failures.value)};
}

double goodput(const FailureCosts& costs, Seconds interval) {
  const double mean = costs.between_failures.value;
  const double lost_for_each = std::expm1((interval + costs.checkpoint).value / mean);
  return interval.value / (mean * std::exp(costs.restart.value / mean) * lost_for_each);
}

}  // namespace pipewright::plan
