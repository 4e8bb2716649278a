#pragma once

// Reader for a schedule file, ready to run.

#include <filesystem>
#include <string>
#include <string_view>

#include "pipewright/plan/generators/schedule_choice.hpp"

namespace pipewright::plan {

/// Returns true if the text names a file and not a schedule of the catalog: it has a dot or a
/// slash.
bool names_schedule_file(std::string_view text);

/// Reads and validates a schedule. It may be in torch's compute-only format, which is lowered like
/// a schedule of the catalog; in torch's format with communication, whose transfers stay
/// unchanged; or a Program as JSON, which runs unchanged. Throws MalformedFile `file:row:column: …`
/// with all errors, or InputError that names rank and action.
ScheduleChoice schedule_from_file(const std::filesystem::path& file);
ScheduleChoice schedule_from_text(const std::string& text, const std::string& file);

/// Returns true if a text in torch's CSV uses the format with communication.
bool has_communication(std::string_view text);

}  // namespace pipewright::plan
