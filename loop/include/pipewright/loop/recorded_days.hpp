#pragma once

// What a training took in each of its steps, found where it lies: as a table of its own, or in the
// folder of a run.

#include <filesystem>
#include <vector>

#include "pipewright/plan/measured/recorded_steps.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::loop {

/// The table in a run's folder.
inline constexpr const char* recorded_steps_file = "steps.csv";

/// A table (`plan::read_recorded_steps`), or the folder of a run that has one. Throws InputError.
plan::RecordedSteps read_record(const std::filesystem::path& file_or_folder);

/// What the first pipeline computed in these steps: how long transfers and sums took is left out,
/// as most of it is waiting. Steps are numbered from `first` on; all are of one Program.
plan::RecordedSteps record_of(const std::vector<plan::Timeline>& steps, int first = 0);

}  // namespace pipewright::loop
