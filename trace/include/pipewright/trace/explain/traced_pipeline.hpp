#pragma once

// The ranks of one pipeline put together: one step, on one clock, as a Schedule and a Timeline.

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
  std::optional<int> step{};         // of "ProfilerStep#7"; else the steps are counted from 0
  int step_index = 0;                //
  int steps = 0;                     // whole ones that all ranks have
  std::vector<std::string> files{};  // by rank of the pipeline
  plan::Schedule schedule;           // as it ran
  std::shared_ptr<const sim::Structure> structure;  // of its Program
  plan::Timeline timeline;                          // with the causes of idle time
  /// When its 0 was, since 1970 by the clock of its first rank; nothing where a trace does not say.
  std::optional<std::int64_t> began_ns{};
  std::vector<double> optimizer_s{};  // by rank
  /// By rank: how far its clock was put back. All 0: what was received was sent before as it is.
  std::vector<double> clock_s{};
  double clock_uncertainty_s = 0;  // of these; infinite where transfers go one way only
  /// The operators of each stage's forward, with means over its microbatches; none where they
  /// differ.
  std::vector<std::vector<TracedOperator>> operators{};
};

/// The number of a ProfilerStep range, or counted from 0 where there are none: `wanted`, or the
/// last that is whole on all of these. Throws InputError that names the file where it is not.
int step_to_explain(const std::vector<const TracedRank*>& ranks, std::optional<int> wanted);

/// One step of it; `ranks` from the first stage's on, as `pipelines_of` orders them. Throws
/// InputError that names file and value for traces of different runs, and for what is no whole
/// pipeline.
TracedPipeline traced_pipeline(const std::vector<const TracedRank*>& ranks, int step);

}  // namespace pipewright::trace
