#include "pipewright/plan/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace pipewright::plan {
namespace {

template <std::size_t n>
std::string in_unit(double value, const std::array<Unit, n>& units) {
  const Unit* unit = &units.back();
  for (const Unit& candidate : units)
    if (std::abs(value) >= candidate.size * 0.9995) {
      unit = &candidate;
      break;
    }
  const double shown = value / unit->size;
  // The number of digits follows from the rounded value: 99.996 becomes "100.0".
  const double rounded = std::abs(shown) * 1.00005;
  const int whole = shown == 0 ? 1 : static_cast<int>(std::floor(std::log10(rounded))) + 1;
  return fmt::format("{:.{}f} {}", shown, std::clamp(4 - whole, 0, 3), unit->name);
}

}  // namespace

std::string time_text(double seconds) {
  static constexpr std::array<Unit, 4> units{{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}}};
  return seconds == 0 ? "0 ms" : in_unit(seconds, units);
}

std::string time_difference_text(double seconds) {
  return (seconds >= 0 ? "+" : "") + time_text(seconds);
}

std::string bytes_text(double bytes) {
  static constexpr std::array<Unit, 4> units{{{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}}};
  return std::abs(bytes) < 999.5 ? fmt::format("{:.0f} B", bytes) : in_unit(bytes, units);
}

Unit column_unit(Seconds longest) { return longest.value < 1 ? Unit{1e-3, "ms"} : Unit{1, "s"}; }

Unit column_unit(Bytes most) {
  return most.value < 1'000'000'000 ? Unit{1e6, "MB"} : Unit{1e9, "GB"};
}

}  // namespace pipewright::plan
