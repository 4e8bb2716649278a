#pragma once

// Names of schedules in tables of runs: those of papers and of other toolkits' classes, in any
// case, with or without spaces, dashes and underscores.

#include <string>

namespace pipewright::models {

struct ScheduleWord {
  std::string schedule{};   // as in a Cut; empty: the default
  int chunks = 0;           // stages per rank if the name gives them ("1F1B-I (v=3)"); 0: not given
  bool recomputes = false;  // "1F1B-R"
};

/// Parses a name. Throws InputError that explains why the schedule cannot be predicted, or lists
/// the known names.
ScheduleWord schedule_word(const std::string& text);

}  // namespace pipewright::models
