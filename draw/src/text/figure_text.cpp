#include "figure_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace pipewright::draw {
namespace {

/// Formats a value below 1000 with three significant digits, which tell 1.23 from 1.24.
std::string three_digits(double value) {
  const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

std::string memory_text(plan::Bytes bytes) {
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

std::string time_text(plan::Seconds time) {
  const bool in_seconds = time.value >= 1;
  return fmt::format("{} {}", three_digits(in_seconds ? time.value : time.value * 1e3),
                     in_seconds ? "s" : "ms");
}

std::string percent_text(plan::Seconds part, plan::Seconds whole) {
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
  if (std::abs(value) < step / 2)
    value = 0;  // otherwise a rounding error such as 0.3 - 3 * 0.1, or -0, would be shown
  for (const auto& [unit, letter] : {std::pair{1e12, "T"}, {1e9, "G"}, {1e6, "M"}})
    if (step >= unit / 10)
      return value == 0 ? "0" : tick_text(value / unit, step / unit) + letter;
  if (step < 1e-6)
    return fmt::format("{:.6g}", value);
  const int decimals = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace pipewright::draw
