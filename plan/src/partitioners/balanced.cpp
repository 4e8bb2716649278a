#include "pipewright/plan/partitioners/balanced.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "infinity.hpp"
#include "partition/even_cut.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/partition/partition.hpp"

namespace pipewright::plan {
namespace {

void check_parts(int parts) {
  if (parts < 1)
    throw InputError(fmt::format("{} parts asked for, the least is 1", parts));
  if (constexpr int most = 1'000'000; parts > most)
    throw InputError(fmt::format("{} parts asked for, the most is {}", parts, most));
}

/// Returns the total weight before each item, followed by the total of all.
std::vector<double> checked_sums(const std::vector<double>& weights) {
  std::vector<double> sums{0};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0) || !std::isfinite(weights[i]))
      throw InputError(fmt::format("the weight of item {} is {}, it must be finite and at least 0",
                                   i, weights[i]));
    sums.push_back(sums.back() + weights[i]);
  }
  if (!std::isfinite(sums.back()))
    throw InputError("the weights together are more than a number can hold");
  return sums;
}

/// Parts that are filled from the left up to a cap.
struct Filling {
  bool fits;         // true if all items fit into the parts
  double heaviest;   // weight of the heaviest part
  double next_step;  // smallest cap that would have added an item to some part
};

Filling fill(const std::vector<double>& sums, int parts, double cap) {
  Filling filling{.fits = false, .heaviest = 0, .next_step = infinity};
  std::size_t end = 0;
  for (int part = 0; part < parts; ++part) {
    const std::size_t begin = end;
    while (end + 1 < sums.size() && sums[end + 1] - sums[begin] <= cap)
      ++end;
    filling.heaviest = std::max(filling.heaviest, sums[end] - sums[begin]);
    filling.fits = end + 1 == sums.size();
    if (filling.fits)
      break;
    filling.next_step = std::min(filling.next_step, sums[end + 1] - sums[begin]);
  }
  return filling;
}

/// Returns the exact minimum of the heaviest part. It bisects over sums of items, because a cap
/// between two such sums fills the parts like the smaller one.
double lightest_bottleneck(const std::vector<double>& sums, int parts) {
  double low = sums.back() / parts * (1 - 1e-12);  // a lower bound
  double high = sums.back();                       // always possible
  while (low < high) {
    const Filling least = fill(sums, parts, low);
    if (least.fits)
      return least.heaviest;
    low = least.next_step;
    const Filling middle = fill(sums, parts, low + (high - low) / 2);
    if (middle.fits)
      high = middle.heaviest;
    else
      low = middle.next_step;
  }
  return high;
}

}  // namespace

std::vector<int> balanced_boundaries(const std::vector<double>& weights, int parts) {
  check_parts(parts);
  const std::vector<double> sums = checked_sums(weights);
  if (weights.size() <= static_cast<std::size_t>(parts))
    return uniform_boundaries(static_cast<int>(weights.size()), parts);
  // Sums of the same fractions in another order differ in their last digits, which must not count.
  const double slack = are_whole(sums) ? 1 : 1 + 1e-12;
  return most_even_cut(sums, parts, lightest_bottleneck(sums, parts) * slack);
}

std::vector<int> uniform_boundaries(int items, int parts) {
  check_parts(parts);
  if (items < 0)
    throw InputError(fmt::format("{} items to partition, the least is 0", items));
  std::vector<int> boundaries{0};
  for (int part = 0; part < parts; ++part) {
    const bool longer = part < items % parts;
    boundaries.push_back(boundaries.back() + items / parts + (longer ? 1 : 0));
  }
  return boundaries;
}

}  // namespace pipewright::plan
