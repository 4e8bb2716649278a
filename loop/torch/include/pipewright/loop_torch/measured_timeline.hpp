#pragma once

// The measured timeline of a training, over all ranks and on one clock.

#include <optional>
#include <vector>

#include "pipewright/loop_torch/membership.hpp"
#include "pipewright/loop_torch/recorder.hpp"
#include "pipewright/plan/timeline/clock_offsets.hpp"

namespace pipewright::loop {

/// The timeline of one step over all ranks, on one clock.
struct MeasuredTimeline {
  plan::Timeline timeline;
  /// How the clocks were aligned, if ranks have different clocks.
  std::optional<plan::ClockOffsets> clocks{};
  /// The second and later data-parallel replicas, each on one clock.
  std::vector<plan::Timeline> others{};
};

/// Assembles the steps of all ranks from the records of each process; every process passes the same
/// number of steps. Collective; only the first process gets the result. Of each tensor-parallel
/// group only the first rank is included. Replicas after the first are left out if the records of
/// all processes would exceed 256 MB.
std::vector<MeasuredTimeline> measured_timelines(const std::vector<StepRecord>& own,
                                                 const plan::Program& program,
                                                 const exec::JobGrid& grid,
                                                 const Membership& members);

/// Assembles only the typical step, which the first process chooses among those after the first
/// `skip`. Empty on all processes but the first.
MeasuredTimeline measured_timeline(const std::vector<StepRecord>& own, std::size_t skip,
                                   const plan::Program& program, const exec::JobGrid& grid,
                                   const Membership& members);

}  // namespace pipewright::loop
