#pragma once

// One file of a Chrome trace, from its first letter on, whoever takes its events.

#include <filesystem>

#include "chrome/chrome_event.hpp"
#include "chrome/chrome_records.hpp"

namespace pipewright::trace {

/// Hands over each event, and fills `header` with what the file says of itself. What is wrong goes
/// into `problems`. Throws MalformedFile where nothing could be read, InputError where the file
/// cannot be.
void read_chrome_file(const std::filesystem::path& file, ChromeFile& header, ProblemList& problems,
                      ChromeEventParser& parser, const ChromeEventParser::Take& take);

}  // namespace pipewright::trace
