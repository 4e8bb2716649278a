#include "figure_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pipewright::plan::drawing {
namespace {

/// Enough digits to tell 1.23 from 1.24, and no more.
std::string three_digits(double value) {
  const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

std::string memory_text(Bytes bytes) {
  if (bytes.value < 1000)
    return fmt::format("{} B", bytes.value);
  double value = static_cast<double>(bytes.value);
  const char* unit = "B";
  for (const char* larger : {"kB", "MB", "GB", "TB"}) {
    if (value < 999.5)
      break;
    value /= 1000;
    unit = larger;
  }
  return fmt::format("{} {}", three_digits(value), unit);
}

std::string time_text(Seconds time) {
  const bool in_seconds = time.value >= 1;
  return fmt::format("{} {}", three_digits(in_seconds ? time.value : time.value * 1e3),
                     in_seconds ? "s" : "ms");
}

std::string percent_text(Seconds part, Seconds whole) {
  if (whole.value <= 0)
    return "-";
  return fmt::format("{:.1f} %", 100 * (part / whole));
}

double round_step(double length, int most) {
  const double rough = length / most;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough)
      return factor * power;
  return 10 * power;
}

std::string tick_text(double value, double step) {
  const double size = std::max(std::abs(value), step);
  if (size >= 1e7 || step < 1e-6)
    return fmt::format("{:.6g}", std::abs(value) < step / 2 ? 0 : value);
  const int decimals = std::clamp(static_cast<int>(-std::floor(std::log10(step) + 1e-9)), 0, 9);
  const std::string text = fmt::format("{:.{}f}", value, decimals);
  // What is left of 0.3 - 3 * 0.1 must not be told as -0.0.
  return text.find_first_not_of("-0.") == std::string::npos && text.front() == '-' ? text.substr(1)
                                                                                   : text;
}

}  // namespace pipewright::plan::drawing
