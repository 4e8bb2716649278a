#pragma once

// What was measured of a training, of all ranks and on one clock.

#include <optional>
#include <vector>

#include "pipewright/loop_torch/membership.hpp"
#include "pipewright/loop_torch/recorder.hpp"
#include "pipewright/plan/timeline/clock_offsets.hpp"

namespace pipewright::loop {

/// A step of all ranks, by one clock.
struct MeasuredTimeline {
  plan::Timeline timeline;
  std::optional<plan::ClockOffsets> clocks{};  // what it took, where ranks have clocks of their own
  std::vector<plan::Timeline> others{};  // of the pipelines after the first, each by one clock
};

/// Steps of all ranks from those that each process recorded, as many of each. Every process calls
/// it; the first has the answer, the others have nothing. Of shards the first; of
/// pipelines after the first nothing where all processes' records would take more than 256 MB.
std::vector<MeasuredTimeline> measured_timelines(const std::vector<StepRecord>& own,
                                                 const plan::Program& program,
                                                 const exec::JobGrid& grid,
                                                 const Membership& members);

/// The same of the step that the first process holds typical, after the first `skip`; empty but
/// there.
MeasuredTimeline measured_timeline(const std::vector<StepRecord>& own, std::size_t skip,
                                   const plan::Program& program, const exec::JobGrid& grid,
                                   const Membership& members);

}  // namespace pipewright::loop
