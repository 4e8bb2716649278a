#pragma once

// Finds the recorded durations of a training's steps: in a table of its own, or in a run's folder.

#include <filesystem>
#include <vector>

#include "pipewright/models/measured/recorded_steps.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::trace {

/// The table's name in a run's folder.
inline constexpr const char* recorded_steps_file = "steps.csv";

/// Reads a table (`plan::read_recorded_steps`), or the table in a run's folder. Throws InputError.
models::RecordedSteps read_record(const std::filesystem::path& file_or_folder);

/// Returns what each pipeline did in these steps, `pipelines[replica][step]`, whose clocks may
/// differ. Steps are numbered from `first` on; all have the same Program.
/// Computes: the duration without the time spent waiting for other tensor-parallel ranks.
/// Transfers, under the name of the send: the time from when both ends had reached it to the
/// receipt. If the receiver was computing meanwhile, the time is unknown, and the median of the
/// transfer's other steps stands in. Transfers unknown in more than half of the steps are omitted.
/// All-reduces are omitted as well, because most of their duration is waiting.
models::RecordedSteps record_of(const std::vector<std::vector<plan::Timeline>>& pipelines,
                                int first = 0);

}  // namespace pipewright::trace
