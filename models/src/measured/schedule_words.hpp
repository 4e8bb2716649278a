#pragma once

// A schedule as tables of runs call it: by the names of papers and of other toolkits' classes, in
// any case, with spaces, dashes and underscores or without.

#include <string>

namespace pipewright::models {

struct ScheduleWord {
  std::string schedule{};  // of a cut; empty: the usual one
  int chunks = 0;  // stages of a rank, where the word says so ("1F1B-I (v=3)"); 0: it does not
  bool recomputes = false;  // "1F1B-R"
};

/// Throws InputError: what the word is and why nobody here can predict it, or which words are
/// known.
ScheduleWord schedule_word(const std::string& text);

}  // namespace pipewright::models
