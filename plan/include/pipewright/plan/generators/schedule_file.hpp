#pragma once

// A schedule that somebody wrote into a file, ready to be run.

#include <filesystem>
#include <string>
#include <string_view>

#include "pipewright/plan/generators/schedule_choice.hpp"

namespace pipewright::plan {

/// Whether a text names a file, and no schedule of the catalogue: it has a dot or a slash.
bool names_schedule_file(std::string_view text);

/// A schedule in torch's compute-only dialect, which is lowered as one of the catalogue is; one in
/// its dialect with communication, whose transfers stay as they are; or a Program as JSON, which is
/// run as it is. It is proved sound. Throws MalformedFile `file:row:column: …` with all errors, or
/// InputError that names rank and action.
ScheduleChoice schedule_from_file(const std::filesystem::path& file);
ScheduleChoice schedule_from_text(const std::string& text, const std::string& file);

/// Whether a text in torch's CSV is of the dialect with communication.
bool has_communication(std::string_view text);

}  // namespace pipewright::plan
