#pragma once

// What a person sees: results on stdout, messages and progress on stderr.

#include <fmt/format.h>

#include <string>

namespace pipewright::cli {

/// A message on stderr, on a line of its own, in place of a progress line that is shown.
void say(const std::string& message);

/// One line that is overwritten while stderr is a terminal, and not shown elsewhere.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool is_shown() const { return shown_; }
  void show(const std::string& text);
  void clear();

 private:
  bool shown_;
};

/// "8 s", "2 min 10 s".
std::string duration_text(double seconds);

}  // namespace pipewright::cli
