#pragma once

// Reads and writes timelines in files of every supported format.

#include <filesystem>
#include <string>
#include <vector>

#include "pipewright/plan/timeline/event_table.hpp"

namespace pipewright::trace {

/// Reads a native file (*.pwt), a trace written by Pipewright, or a foreign Chrome trace (the last
/// two also gzipped). The content determines the format. The trace of a whole job (`is_job_trace`)
/// has a row for each worker, the slowest on top. Unreadable parts of a trace are listed in
/// `problems`. Throws MalformedFile that says what would be right, InputError if the file cannot be
/// opened or read.
plan::EventTable read_timeline_file(const std::filesystem::path& file,
                                    std::vector<std::string>& problems);

/// Reads one iteration of a pipeline, to compare and to draw: all of a trace of Pipewright, which
/// must be whole, or the tracks called "pipeline" of a foreign trace. Of several marked steps,
/// takes the one of median length. Throws InputError if there are no actions, or if they belong to
/// several iterations that no mark separates.
plan::Timeline read_timeline(const std::filesystem::path& file, std::vector<std::string>& problems);

/// Returns one iteration of a pipeline from a table, as above. `name` stands for the table in
/// messages.
plan::Timeline actions_of(const plan::EventTable& table, const std::string& name);

/// Writes a table in the format of the suffix: .pwt (native), .json and .json.gz (Chrome trace),
/// .csv (a line per event), .svg (only if small enough to be legible). Throws InputError for
/// another suffix.
void write_timeline_file(const std::filesystem::path& file, const plan::EventTable& table);
/// Throws the same error as write_timeline_file, so that a command can check before it computes.
void require_timeline_suffix(const std::filesystem::path& file);

/// Writes a native file if the suffix is .pwt, and a Chrome trace for any other suffix.
void write_timeline(const std::filesystem::path& file, const plan::Timeline& timeline);

}  // namespace pipewright::trace
