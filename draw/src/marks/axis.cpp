#include "axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/figure_text.hpp"

namespace pipewright::draw {
namespace {

constexpr int most_value_ticks = 7;
constexpr int most_quantity_ticks = 11;
constexpr int most_log_ticks = 15;

struct Extent {
  double least = 0;
  double most = 1;
};

Extent extent_of(const std::vector<double>& values) {
  if (values.empty())
    return {};
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {*least, *most};
}

/// Returns the multiples of `step` between `from` and `to`, with a tolerance for rounding errors.
std::vector<Tick> ticks_between(double from, double to, double step) {
  std::vector<Tick> ticks;
  const double first = std::ceil(from / step - 1e-9);
  const auto count = static_cast<int>(std::floor(to / step + 1e-9) - first) + 1;
  for (int i = 0; i < count; ++i) {
    const double value = (first + i) * step;
    ticks.push_back({value, tick_text(value, step)});
  }
  return ticks;
}

bool is_power_of_two(double value) {
  int exponent = 0;
  return std::frexp(value, &exponent) == 0.5;
}

std::vector<double> powers_of_two(Extent extent) {
  std::vector<double> powers;
  const int last = static_cast<int>(std::floor(std::log2(extent.most / extent.least)));
  for (int doublings = 0; doublings <= last; ++doublings)
    powers.push_back(std::ldexp(extent.least, doublings));
  return powers;
}

/// Returns 1, 2 and 5 times the powers of ten in the range.
std::vector<double> round_numbers(Extent extent) {
  std::vector<double> numbers;
  const int last = static_cast<int>(std::floor(std::log10(extent.most)));
  for (int power = static_cast<int>(std::floor(std::log10(extent.least))); power <= last; ++power)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double number = factor * std::pow(10, power);
      if (number >= extent.least * (1 - 1e-9) && number <= extent.most * (1 + 1e-9))
        numbers.push_back(number);
    }
  return numbers;
}

/// Returns ticks for every n-th value, so that their labels do not overlap.
std::vector<Tick> thinned(const std::vector<double>& values) {
  const std::size_t step = (values.size() + most_log_ticks - 1) / most_log_ticks;
  std::vector<Tick> ticks;
  for (std::size_t i = 0; i < values.size(); i += step)
    ticks.push_back({values[i], fmt::format("{:.7g}", values[i])});
  return ticks;
}

}  // namespace

double Axis::at(double value) const {
  const double share =
      logarithmic ? std::log(value / from) / std::log(to / from) : (value - from) / (to - from);
  return pixel_from + share * (pixel_to - pixel_from);
}

Axis value_axis(const std::vector<double>& values) {
  auto [least, most] = extent_of(values);
  if (least > 0 && (least < 0.6 * most || least == most))
    least = 0;
  if (most < 0 && (most > 0.6 * least || least == most))
    most = 0;
  if (least == most)
    most = least + 1;
  const double step = round_step(most - least, most_value_ticks);
  Axis axis{.from = std::floor(least / step + 1e-9) * step,
            .to = std::ceil(most / step - 1e-9) * step};
  axis.ticks = ticks_between(axis.from, axis.to, step);
  return axis;
}

Axis quantity_axis(const std::vector<double>& values) {
  auto [least, most] = extent_of(values);
  if (least == most) {
    Axis axis{.from = least - 1, .to = most + 1};
    axis.ticks.push_back({least, fmt::format("{:.7g}", least)});
    return axis;
  }
  Axis axis{.from = least, .to = most};
  axis.ticks = ticks_between(least, most, round_step(most - least, most_quantity_ticks));
  return axis;
}

Axis logarithmic_axis(const std::vector<double>& values) {
  const auto [least, most] = values.empty() ? Extent{1, 10} : extent_of(values);
  Axis axis{.from = least, .to = most, .logarithmic = true};
  if (least == most) {
    axis.from = least / 2;
    axis.to = most * 2;
    axis.ticks.push_back({least, fmt::format("{:.7g}", least)});
    return axis;
  }
  const bool in_powers =
      !values.empty() && std::all_of(values.begin(), values.end(), is_power_of_two);
  const auto marks = in_powers ? powers_of_two({least, most}) : round_numbers({least, most});
  if (marks.size() >= 3)
    axis.ticks = thinned(marks);
  else
    axis.ticks =
        in_powers ? thinned(marks) : ticks_between(least, most, round_step(most - least, 5));
  return axis;
}

Axis category_axis(const std::vector<std::string>& names) {
  Axis axis{.from = -0.5, .to = static_cast<double>(names.size()) - 0.5};
  for (std::size_t i = 0; i < names.size(); ++i)
    axis.ticks.push_back({static_cast<double>(i), names[i]});
  return axis;
}

}  // namespace pipewright::draw
