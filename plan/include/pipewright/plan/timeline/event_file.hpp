#pragma once

// The native timeline file (*.pwt): the columns of an EventTable in their memory layout, so that a
// file of ten million events only needs to be mapped and checked.
//
// All numbers are little-endian. The file has a header of 64 bytes, a table of sections with a
// checksum each (XXH64), then the sections, each aligned to 64 bytes. Other versions are rejected.

#include <filesystem>

#include "pipewright/plan/timeline/event_table.hpp"

namespace pipewright::plan {

/// Writes to a temporary file in the same folder and renames it. Throws InputError if the table
/// does not meet the guarantees of read_event_file, std::runtime_error if writing fails.
void write_event_file(const std::filesystem::path& file, const EventTable& table);

/// Maps the file, which stays mapped while a copy of the table lives; meanwhile it may be replaced
/// or removed, but not overwritten in place. The result is checked: every number is in its range,
/// times are finite and not negative, the tracks divide the events among them, and the events of
/// each track are in order and do not overlap. Throws MalformedFile that says what is wrong and
/// where, InputError if the file cannot be read.
EventTable read_event_file(const std::filesystem::path& file);

/// Returns true if a file with this beginning is meant to be an event file.
bool is_event_file(std::string_view beginning);

}  // namespace pipewright::plan
