#include "print/console.hpp"

#include <unistd.h>

#include <cmath>
#include <cstdio>

namespace pipewright::cli {

void say(const std::string& message) { fmt::print(stderr, "{}\n", message); }

ProgressLine::ProgressLine() : shown_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::show(const std::string& text) {
  if (!shown_)
    return;
  fmt::print(stderr, "\r\x1b[K{}", text);
  std::fflush(stderr);
  dirty_ = true;
}

void ProgressLine::clear() {
  if (dirty_)
    fmt::print(stderr, "\r\x1b[K");
  dirty_ = false;
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<long>(std::lround(seconds));
  if (whole < 60)
    return fmt::format("{} s", whole);
  return fmt::format("{} min {} s", whole / 60, whole % 60);
}

}  // namespace pipewright::cli
