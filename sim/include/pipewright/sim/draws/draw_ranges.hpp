#pragma once

// Between which bounds the figures of other steps, as many as were recorded, come to lie: a record
// is but one of those that could have been, and so are the steps that it is held against. Other
// records are drawn from it block by block, and from each of them as many steps again (a block
// bootstrap of two levels, for a prediction: Künsch, Ann. Stat. 17, 1989).

#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/sim/draws/draws.hpp"

namespace pipewright::sim {

/// Below `low_s` a figure lies in one of twenty cases, and above `high_s` in another. Infinite: the
/// record is too short to tell, as of so many other steps the figure lies beyond all those recorded
/// in more than one of twenty, whatever their distribution.
struct DrawRange {
  double low_s = 0, high_s = 0;
  bool has(double seconds) const { return low_s <= seconds && seconds <= high_s; }
};

struct DrawRanges {
  int steps = 0;      // that were recorded, and of each other record
  int records = 0;    // that were drawn
  double unseen = 0;  // with this chance none of those recorded is among the longest 5 %
  DrawRange mean{}, p50{}, p95{}, p99{};
};

/// Of a record of so many steps: how many follow each other in a block, their third root (1 below
/// 8), and how many other records are drawn where somebody wants so many draws: about as many again
/// in all, from 20 records on.
int block_of(int steps);
int records_of(int steps, int draws);

/// `iterations`: of drawn records one after the other, each of so many steps.
DrawRanges ranges_of(const std::vector<double>& iterations, int steps);

/// Of a job; throws what `draw_iterations` does.
DrawRanges draw_ranges(const Structure& structure, const StepCosts& costs, const Jitter& jitter,
                       const DrawOptions& options);

/// A list of two, of which null is infinite.
plan::Json to_json(const DrawRange& range);
plan::Json to_json(const DrawRanges& ranges);

}  // namespace pipewright::sim
