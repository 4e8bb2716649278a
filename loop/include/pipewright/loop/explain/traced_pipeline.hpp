#pragma once

// The ranks of one run put together: one step, on one clock, as a Schedule and a Timeline.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/loop/explain/traced_rank.hpp"
#include "pipewright/plan/schedules/schedule.hpp"
#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/sim/structure/structure.hpp"

namespace pipewright::loop {

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
  std::vector<double> optimizer_s{};                // by rank
  /// By rank: how far its clock was put back. All 0: what was received was sent before as it is.
  std::vector<double> clock_s{};
  double clock_uncertainty_s = 0;  // of these; infinite where transfers go one way only
  /// The operators of each stage's forward, with means over its microbatches; none where they
  /// differ.
  std::vector<std::vector<TracedOperator>> operators{};
};

/// `step`: the number of a ProfilerStep range, or counted from 0 where there are none; nothing: the
/// last that is whole. Throws InputError that names file and value for ranks that are missing or
/// doubled, for traces of different runs, and for what is no whole pipeline.
TracedPipeline traced_pipeline(const std::vector<TracedRank>& ranks, std::optional<int> step = {});

}  // namespace pipewright::loop
