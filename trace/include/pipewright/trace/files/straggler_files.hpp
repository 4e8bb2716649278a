#pragma once

// Writes the explanation of a traced job into a folder, and reads its trace as a timeline.

#include <filesystem>
#include <string>
#include <vector>

#include "pipewright/trace/straggler/straggler_report.hpp"

namespace pipewright::trace {

/// Writes timeline.pwt and timeline.json of all workers, schedule.csv, steps.csv with the recorded
/// steps to sample (`record_of`), and stragglers.json with the result of `document_of`.
void write_stragglers(const std::filesystem::path& folder, const StragglerReport& report,
                      const plan::EventTable& timeline);

/// Reads the trace of a job with a row for each worker, the slowest on top. Throws as
/// `read_job_trace` and `job_steps` do.
plan::EventTable read_job_timeline(const std::filesystem::path& file,
                                   std::vector<std::string>& problems);

}  // namespace pipewright::trace
