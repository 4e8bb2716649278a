#pragma once

// The native timeline file (*.pwt): the columns of an EventTable as they lie in memory, so that a
// file of ten million events is mapped, checked and there.
//
// All numbers are little-endian. A header of 64 bytes, a table of sections with a checksum each
// (XXH64), then the sections, each from a multiple of 64 bytes on. Another version is refused.

#include <filesystem>

#include "pipewright/plan/timeline/event_table.hpp"

namespace pipewright::plan {

/// Writes to a temporary neighbour and renames. Throws InputError where the table is not what
/// read_event_file promises, std::runtime_error when the disk refuses.
void write_event_file(const std::filesystem::path& file, const EventTable& table);

/// The file is mapped, and stays so while a copy of the table lives: it may be replaced or removed
/// meanwhile, but not written over in place. What is returned can be relied on: every number is in
/// its range, times are finite and not negative, the tracks divide the events among them, and the
/// events of each are in order and do not overlap. Throws MalformedFile that says what is wrong
/// and where, InputError when the file cannot be read.
EventTable read_event_file(const std::filesystem::path& file);

/// Whether a file that begins so is meant to be one of these.
bool is_event_file(std::string_view beginning);

}  // namespace pipewright::plan
