#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "pipewright/plan/partition.hpp"

namespace pipewright::plan {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Sums of the same weights in another order differ in their last digits: that is no difference.
constexpr double slack = 1 + 1e-12;

void check_parts(std::size_t items, int parts) {
  if (parts < 1)
    throw InputError(fmt::format("{} parts asked for, the least is 1", parts));
  if (static_cast<std::size_t>(parts) > items)
    throw InputError(fmt::format("{} parts asked for, but there are {} items", parts, items));
}

void check_weights(const std::vector<double>& weights) {
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0) || !std::isfinite(weights[i]))
      throw InputError(fmt::format("the weight of item {} is {}, it must be finite and at least 0",
                                   i, weights[i]));
    sum += weights[i];
  }
  if (!std::isfinite(sum))
    throw InputError("the weights together are more than a number can hold");
}

/// Dynamic programming over (parts, items): how well the first j items can be cut into k parts.
class Balancer {
 public:
  Balancer(const std::vector<double>& weights, int parts)
      : items_(weights.size()), parts_(static_cast<std::size_t>(parts)), sum_before_(items_ + 1) {
    for (std::size_t i = 0; i < items_; ++i)
      sum_before_[i + 1] = sum_before_[i] + weights[i];
  }

  std::vector<int> run() const {
    const double bottleneck = lightest_bottleneck();
    // Squares of shares neither overflow nor vanish, whatever unit the weights have.
    const double unit = bottleneck > 0 ? bottleneck : 1;
    const auto squared = [&](std::size_t begin, std::size_t end) {
      const double share = sum(begin, end) / unit;
      return share <= slack ? share * share : infinity;
    };
    const auto least = table(squared, [](double a, double b) { return a + b; });

    // From the last part backwards, each border as late as the least sum of squares allows.
    std::vector<int> boundaries(parts_ + 1, 0);
    std::size_t end = items_;
    for (std::size_t k = parts_; k > 0; --k) {
      boundaries[k] = static_cast<int>(end);
      std::size_t begin = end - 1;
      while (!(least[k - 1][begin] + squared(begin, end) <= least[k][end] * slack))
        --begin;
      end = begin;
    }
    return boundaries;
  }

 private:
  double sum(std::size_t begin, std::size_t end) const {
    return sum_before_[end] - sum_before_[begin];
  }

  double lightest_bottleneck() const {
    const auto weight = [&](std::size_t begin, std::size_t end) { return sum(begin, end); };
    return table(weight, [](double a, double b) { return std::max(a, b); })[parts_][items_];
  }

  /// table[k][j]: the least that `join` makes of the costs of k parts that hold the first j items.
  template <class PartCost, class Join>
  std::vector<std::vector<double>> table(const PartCost& cost, const Join& join) const {
    std::vector least(parts_ + 1, std::vector<double>(items_ + 1, infinity));
    least[0][0] = 0;
    for (std::size_t k = 1; k <= parts_; ++k)
      for (std::size_t end = k; end <= items_; ++end)
        for (std::size_t begin = k - 1; begin < end; ++begin)
          least[k][end] = std::min(least[k][end], join(least[k - 1][begin], cost(begin, end)));
    return least;
  }

  std::size_t items_;
  std::size_t parts_;
  std::vector<double> sum_before_;  // of the weights before each item
};

}  // namespace

std::vector<int> balanced_boundaries(const std::vector<double>& weights, int parts) {
  check_parts(weights.size(), parts);
  check_weights(weights);
  return Balancer(weights, parts).run();
}

std::vector<int> uniform_boundaries(int items, int parts) {
  check_parts(static_cast<std::size_t>(std::max(items, 0)), parts);
  std::vector<int> boundaries{0};
  for (int part = 0; part < parts; ++part) {
    const bool longer = part < items % parts;
    boundaries.push_back(boundaries.back() + items / parts + (longer ? 1 : 0));
  }
  return boundaries;
}

}  // namespace pipewright::plan
