#pragma once

// What a training took in each of its steps, found where it lies: as a table of its own, or in the
// folder of a run.

#include <filesystem>
#include <vector>

#include "pipewright/models/measured/recorded_steps.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::trace {

/// The table in a run's folder.
inline constexpr const char* recorded_steps_file = "steps.csv";

/// A table (`plan::read_recorded_steps`), or the folder of a run that has one. Throws InputError.
models::RecordedSteps read_record(const std::filesystem::path& file_or_folder);

/// What each pipeline did in these steps, `pipelines[replica][step]`, whose clocks need not be the
/// same. Steps are numbered from `first` on; all are of one Program. Of computes the time without
/// waits among shards. Of transfers, under the name of the send, the time from when both ends were
/// at it to the receipt, where the receiver had nothing else to do: what nobody waited for took as
/// long as anything, and counts as the median of those. A transfer of which less than half of the
/// steps tell is left out, and so are sums, as most of what they take is waiting.
models::RecordedSteps record_of(const std::vector<std::vector<plan::Timeline>>& pipelines,
                                int first = 0);

}  // namespace pipewright::trace
