#pragma once

// What the explanation of a traced job leaves in a folder, and its trace as a timeline.

#include <filesystem>
#include <string>
#include <vector>

#include "pipewright/trace/straggler/straggler_report.hpp"

namespace pipewright::trace {

/// Leaves timeline.pwt and timeline.json of all workers, schedule.csv, steps.csv to draw from
/// (`record_of`), and stragglers.json with what `document_of` says.
void write_stragglers(const std::filesystem::path& folder, const StragglerReport& report,
                      const plan::EventTable& timeline);

/// The trace of a job with a row for each worker, the slowest on top. Throws as `read_job_trace`
/// and `job_steps` do.
plan::EventTable read_job_timeline(const std::filesystem::path& file,
                                   std::vector<std::string>& problems);

}  // namespace pipewright::trace
