#pragma once

// Console output: results on stdout, messages and progress on stderr.

#include <fmt/format.h>

#include <string>

namespace pipewright::cli {

/// Prints a message line on stderr, replacing a progress line that is shown.
void say(const std::string& message);

/// A line that is overwritten in place if stderr is a terminal, and not shown otherwise.
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

/// Returns "8 s" or "2 min 10 s".
std::string duration_text(double seconds);

}  // namespace pipewright::cli
