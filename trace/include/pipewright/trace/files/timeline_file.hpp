#pragma once

// Timelines in files, whatever their format.

#include <filesystem>
#include <string>
#include <vector>

#include "pipewright/plan/timeline/event_table.hpp"

namespace pipewright::trace {

/// Reads a native file (*.pwt), a trace of ours, or a Chrome trace of others, the last two also
/// gzipped: told by what is in it. The trace of a whole job (`is_job_trace`) has a row for each
/// worker, the slowest on top. What could not be read of a trace goes into `problems`. Throws
/// MalformedFile that says what would be right, InputError where the file cannot be read.
plan::EventTable read_timeline_file(const std::filesystem::path& file,
                                    std::vector<std::string>& problems);

/// One iteration of a pipeline in a file, to compare and to draw: all that is in ours, and of
/// others' the tracks called "pipeline": of several marked steps the one of median length. A trace
/// of ours must be whole. Throws InputError where there are no actions, and where they are of
/// several iterations that nothing tells apart.
plan::Timeline read_timeline(const std::filesystem::path& file, std::vector<std::string>& problems);

/// One iteration of a pipeline in a table, likewise. `name` stands for the table in messages.
plan::Timeline actions_of(const plan::EventTable& table, const std::string& name);

/// Writes by suffix: .pwt (native), .json and .json.gz (Chrome trace), .csv (a line for each
/// event), .svg (where people could still read it). Throws InputError for another suffix.
void write_timeline_file(const std::filesystem::path& file, const plan::EventTable& table);
/// Throws the same, for who asks before there is anything to write.
void require_timeline_suffix(const std::filesystem::path& file);

/// A native file, where the suffix is .pwt, and a Chrome trace under any other.
void write_timeline(const std::filesystem::path& file, const plan::Timeline& timeline);

}  // namespace pipewright::trace
