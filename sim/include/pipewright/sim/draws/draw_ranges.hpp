#pragma once

// Confidence intervals of step-time figures: the range in which the figures of another record of as
// many steps lie. The record is only one of the possible records, and so are the steps that it is
// compared with. So other records are sampled from it block by block, and as many steps again are
// sampled from each of them (a block bootstrap of two levels, for a prediction: Künsch, Ann. Stat.
// 17, 1989).

#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/sim/draws/draws.hpp"

namespace pipewright::sim {

/// A figure lies below `low_s` with a probability of 1 in 20, and above `high_s` with a probability
/// of 1 in 20. `high_s` is infinite if the record is too short: then the figure of as many other
/// steps exceeds all recorded steps with a probability of more than 1 in 20, whatever their
/// distribution.
struct SampledRange {
  double low_s = 0, high_s = 0;
  bool has(double seconds) const { return low_s <= seconds && seconds <= high_s; }
};

struct SampledRanges {
  int steps = 0;      // recorded; each sampled record has as many
  int records = 0;    // sampled
  double unseen = 0;  // probability that no recorded step is among the longest 5 %
  SampledRange mean{}, p50{}, p95{}, p99{};
};

/// Return the block length for a record of `steps` steps, their cube root (1 below 8), and the
/// number of records to sample for `draws` samples: about as many steps in all, but at least 20
/// records.
int block_of(int steps);
int records_of(int steps, int draws);

/// Returns the ranges. `iterations` holds the sampled records one after the other, each of `steps`
/// steps.
SampledRanges ranges_of(const std::vector<double>& iterations, int steps);

/// Returns the ranges for a job. Throws what `draw_iterations` throws.
SampledRanges draw_ranges(const Structure& structure, const StepCosts& costs, const Jitter& jitter,
                          const SamplingOptions& options);

/// Returns a list of two numbers, in which null means infinite.
plan::Json to_json(const SampledRange& range);
plan::Json to_json(const SampledRanges& ranges);

}  // namespace pipewright::sim
