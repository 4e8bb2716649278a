#include "pipewright/trace/straggler/microbatch_lengths.hpp"

#include <cmath>

#include "straggler/job_source.hpp"

namespace pipewright::trace {
namespace {

constexpr double least_variance = 1e-12;  // of times divided by their mean; rounding causes less

/// Sums from which standard deviation and correlation are computed.
struct Pairs {
  double count = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;

  void add(double a, double b) {
    ++count;
    x += a, y += b;
    xx += a * a, yy += b * b, xy += a * b;
  }
  double variance_of_sum() const {
    const double mean = (x + y) / count;
    return std::max(0.0, (xx + 2 * xy + yy) / count - mean * mean);
  }
  double correlation() const {
    const double a = xx / count - x / count * x / count, b = yy / count - y / count * y / count;
    const double both = xy / count - x / count * y / count;
    return a > least_variance && b > least_variance ? both / std::sqrt(a * b) : 0;
  }
};

}  // namespace

MicrobatchLengths microbatch_lengths(const JobSteps& steps) {
  const JobSource source(steps);
  const JobLayout& layout = steps.plan.layout;
  const JobSteps& own = steps;
  Pairs relative;
  for (int worker = 0; worker < layout.workers(); ++worker)
    for (int chunk = 0; chunk < layout.chunks; ++chunk) {
      Pairs mean;
      const auto each = [&](const auto& take) {
        for (int microbatch = 0; microbatch < own.plan.schedule.microbatches; ++microbatch) {
          const auto forward =
              source.times(source.compute(worker, Direction::Forward, chunk, microbatch));
          const auto backward =
              source.times(source.compute(worker, Direction::Backward, chunk, microbatch));
          for (std::size_t step = 0; step < forward.size(); ++step)
            take(forward[step], backward[step]);
        }
      };
      each([&](double forward, double backward) { mean.add(forward, backward); });
      if (mean.x > 0 && mean.y > 0)
        each([&](double forward, double backward) {
          relative.add(forward * mean.count / (mean.x + mean.y),
                       backward * mean.count / (mean.x + mean.y));
        });
    }
  if (relative.count == 0)
    return {};
  return {std::sqrt(relative.variance_of_sum()), relative.correlation()};
}

}  // namespace pipewright::trace
