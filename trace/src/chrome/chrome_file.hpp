#pragma once

// Reads one file of a Chrome trace from its first character on, and passes its events to a
// callback.

#include <filesystem>

#include "chrome/chrome_event.hpp"
#include "chrome/chrome_records.hpp"

namespace pipewright::trace {

/// Passes each event to `take`, and fills `header` with the file's metadata. Invalid events are
/// listed in `problems`. Throws MalformedFile if nothing could be read, InputError if the file
/// cannot be opened or read.
void read_chrome_file(const std::filesystem::path& file, ChromeFile& header, ProblemList& problems,
                      ChromeEventParser& parser, const ChromeEventParser::Take& take);

}  // namespace pipewright::trace
