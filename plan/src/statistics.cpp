#include "pipewright/plan/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipewright::plan {
namespace {

/// Interpolates linearly between the two nearest sorted values.
double quantile(const std::vector<double>& sorted, double fraction) {
  const double at = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

double typical_mean(std::vector<double> values) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  const auto left_out = static_cast<std::ptrdiff_t>(values.size() / 20);
  return std::accumulate(values.begin() + left_out, values.end() - left_out, 0.0) /
         static_cast<double>(static_cast<std::ptrdiff_t>(values.size()) - 2 * left_out);
}

double drift(std::vector<double> values) {
  const double middle = median(values);
  for (double& value : values)
    value = std::abs(value - middle);
  std::sort(values.begin(), values.end());
  return middle > 0 ? quantile(values, 0.9) / middle : 0;
}

double spread(std::vector<double> values) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  const double middle = quantile(values, 0.5);
  return middle > 0 ? (quantile(values, 0.75) - quantile(values, 0.25)) / middle : 0;
}

}  // namespace pipewright::plan
