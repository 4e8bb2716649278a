#include "comparison_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "pipewright/loop/compare/action_errors.hpp"

namespace pipewright::loop {
namespace {

std::string cell(std::optional<double> value, const Display& shown) {
  if (!value || !std::isfinite(*value))
    return "-";
  return fmt::format("{:.{}f} {}", *value / shown.unit.size, shown.decimals, shown.unit.name);
}

std::string error_cell(std::optional<double> error) {
  if (!error)
    return "-";
  const double rounded = std::round(*error * 10) / 10 + 0.0;  // + 0.0: never a negative zero
  return fmt::format("{:+.1f} %", rounded);
}

}  // namespace

Display display(double largest, const plan::Unit& unit) {
  const double shown = std::abs(largest) / unit.size;
  if (!(shown > 0) || !std::isfinite(shown))
    return {unit, 1};
  const int digits_before = static_cast<int>(std::floor(std::log10(shown))) + 1;
  return {unit, std::clamp(4 - digits_before, 0, 6)};
}

std::optional<double> error_of(std::optional<double> predicted, std::optional<double> measured) {
  if (!predicted || !measured)
    return {};
  const double error = error_percent(*predicted, *measured);
  return std::isfinite(error) ? std::optional(error) : std::nullopt;
}

ComparisonRow compared(std::string what, std::optional<double> predicted,
                       std::optional<double> measured, const Display& shown) {
  return {std::move(what), "", cell(predicted, shown), cell(measured, shown),
          error_cell(error_of(predicted, measured))};
}

std::string table_of(const std::vector<ComparisonRow>& rows) {
  std::size_t what = 0, count = 0, figure = 0, error = 0;
  for (const ComparisonRow& row : rows) {
    what = std::max(what, row.what.size());
    count = std::max(count, row.count.size());
    figure = std::max({figure, row.predicted.size(), row.measured.size()});
    error = std::max(error, row.error.size());
  }
  const std::size_t counted = what + (count == 0 ? 0 : count + 2);
  std::string table;
  for (const ComparisonRow& row : rows)
    table +=
        fmt::format("{:<{}}{:>{}}  {:>{}}  {:>{}}  {:>{}}\n", row.what, what, row.count,
                    counted - what, row.predicted, figure, row.measured, figure, row.error, error);
  return table;
}

}  // namespace pipewright::loop
