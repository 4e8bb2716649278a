#include "print/console.hpp"

#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdio>

namespace pipewright::cli {
namespace {

std::atomic<bool> shown_line = false;  // on the terminal's last line, by any ProgressLine

void clear_line() {
  if (shown_line.exchange(false))
    fmt::print(stderr, "\r\x1b[K");
}

}  // namespace

void say(const std::string& message) {
  clear_line();
  fmt::print(stderr, "{}\n", message);
}

ProgressLine::ProgressLine() : shown_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::show(const std::string& text) {
  if (!shown_)
    return;
  fmt::print(stderr, "\r\x1b[K{}", text);
  std::fflush(stderr);
  shown_line = true;
}

void ProgressLine::clear() { clear_line(); }

std::string duration_text(double seconds) {
  const auto whole = static_cast<long>(std::lround(seconds));
  if (whole < 60)
    return fmt::format("{} s", whole);
  return fmt::format("{} min {} s", whole / 60, whole % 60);
}

}  // namespace pipewright::cli
