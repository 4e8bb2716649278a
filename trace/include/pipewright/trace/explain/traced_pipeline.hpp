#pragma once

// Combines the ranks of one pipeline: one step, on one clock, as a Schedule and a Timeline.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/schedules/schedule.hpp"
#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/sim/structure/structure.hpp"
#include "pipewright/trace/explain/traced_rank.hpp"

namespace pipewright::trace {

struct TracedPipeline {
  ActionSource source = ActionSource::Ranges;
  bool on_device = false;
  std::optional<int> step{};         // number of "ProfilerStep#7"; without one, steps are counted
                                     // from 0
  int step_index = 0;                //
  int steps = 0;                     // number of whole steps that all ranks have
  std::vector<std::string> files{};  // in order of the pipeline's ranks
  plan::Schedule schedule;           // the order that actually ran
  std::shared_ptr<const sim::Structure> structure;  // of the Program lowered from `schedule`
  plan::Timeline timeline;                          // with the causes of idle time
  /// The timeline's time 0 in nanoseconds since 1970 by the first rank's clock; empty if any trace
  /// lacks it.
  std::optional<std::int64_t> began_ns{};
  std::vector<double> optimizer_s{};  // by rank
  /// Correction subtracted from each rank's clock. All 0 if no message arrives before it was sent.
  std::vector<double> clock_s{};
  double clock_uncertainty_s = 0;  // of these corrections; infinite if transfers go in one
                                   // direction only
  /// The operators of each stage's forward, with mean times over its microbatches; empty if the
  /// microbatches have different operators.
  std::vector<std::vector<TracedOperator>> operators{};
};

/// Returns the number of the step to explain: `wanted`, or the last step that is whole on all of
/// these ranks. A number is that of a ProfilerStep range, or counts from 0 if there are none.
/// Throws InputError that names the file if that step is not whole.
int step_to_explain(const std::vector<const TracedRank*>& ranks, std::optional<int> wanted);

/// Combines one step of `ranks`, which are ordered from the first stage on, as `pipelines_of`
/// returns them. Throws InputError that names file and value if the traces come from different runs
/// or do not form a whole pipeline.
TracedPipeline traced_pipeline(const std::vector<const TracedRank*>& ranks, int step);

}  // namespace pipewright::trace
