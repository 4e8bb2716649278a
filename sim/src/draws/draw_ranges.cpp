#include "pipewright/sim/draws/draw_ranges.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace pipewright::sim {
namespace {

constexpr double one_end = 0.05;     // of the cases beyond each end
constexpr int least_for_blocks = 8;  // steps: with fewer, a block would be most of them
constexpr int fewest_records = 20, most_records = 200;

/// Returns the probability that the longest `count` of `steps` steps are all longer than as many
/// other steps.
double all_beyond(int steps, int count) {
  double chance = 1;
  for (int at = 0; at < count; ++at)
    chance *= static_cast<double>(steps - at) / (2.0 * steps - at);
  return chance;
}

SampledRange range_of(std::vector<double> figures) {
  const Draws sorted(std::move(figures));
  return {sorted.percentile(one_end), sorted.percentile(1 - one_end)};
}

/// Returns the range of a percentile, which is the k-th of the longest steps.
SampledRange range_of_percentile(std::vector<double> figures, double fraction, int steps) {
  SampledRange range = range_of(std::move(figures));
  const int shorter = std::clamp(static_cast<int>(std::ceil(fraction * steps)), 1, steps);
  if (all_beyond(steps, steps - shorter + 1) > one_end)
    range.high_s = std::numeric_limits<double>::infinity();
  return range;
}

}  // namespace

int block_of(int steps) {
  if (steps < least_for_blocks)
    return 1;
  int block = 1;
  while (block * block * block < steps)
    ++block;
  return block;
}

int records_of(int steps, int draws) {
  return std::clamp(draws / steps, fewest_records, most_records);
}

SampledRanges ranges_of(const std::vector<double>& iterations, int steps) {
  SampledRanges ranges{.steps = steps,
                       .records = static_cast<int>(iterations.size()) / steps,
                       .unseen = std::pow(0.95, steps)};
  std::vector<double> mean, p50, p95, p99;
  for (auto record = iterations.begin(); iterations.end() - record >= steps; record += steps) {
    const Draws own({record, record + steps});
    mean.push_back(own.mean());
    p50.push_back(own.percentile(0.50));
    p95.push_back(own.percentile(0.95));
    p99.push_back(own.percentile(0.99));
  }
  ranges.mean = range_of(std::move(mean));
  ranges.p50 = range_of_percentile(std::move(p50), 0.50, steps);
  ranges.p95 = range_of_percentile(std::move(p95), 0.95, steps);
  ranges.p99 = range_of_percentile(std::move(p99), 0.99, steps);
  return ranges;
}

SampledRanges draw_ranges(const Structure& structure, const StepCosts& costs, const Jitter& jitter,
                          const SamplingOptions& options) {
  const int steps = jitter.steps();
  const JobJitter of_job(structure, costs.replicas, jitter, block_of(steps));
  const SamplingOptions all{.count = records_of(steps, options.count) * steps,
                            .seed = options.seed};
  return ranges_of(iterations_drawn(structure, costs, of_job, all), steps);
}

plan::Json to_json(const SampledRange& range) {
  return {range.low_s, std::isfinite(range.high_s) ? plan::Json(range.high_s) : plan::Json()};
}

plan::Json to_json(const SampledRanges& ranges) {
  return {{"steps", ranges.steps},         {"records", ranges.records},
          {"confidence", 1 - 2 * one_end}, {"mean_s", to_json(ranges.mean)},
          {"p50_s", to_json(ranges.p50)},  {"p95_s", to_json(ranges.p95)},
          {"p99_s", to_json(ranges.p99)},  {"longest_unseen", ranges.unseen}};
}

}  // namespace pipewright::sim
