#pragma once

// Axes of a chart: they map values to pixels and have ticks.

#include <string>
#include <vector>

namespace pipewright::draw {

struct Tick {
  double value = 0;
  std::string text;
};

struct Axis {
  double from = 0;  // first value
  double to = 1;
  double pixel_from = 0;
  double pixel_to = 0;
  bool logarithmic = false;
  std::vector<Tick> ticks{};

  /// Returns the pixel of a value.
  double at(double value) const;
};

/// Returns an axis that starts and ends at round numbers around these values. It starts at 0 unless
/// the values are close together and far from 0.
Axis value_axis(const std::vector<double>& values);

/// Returns an axis from the smallest to the largest value, with ticks at round numbers in between.
Axis quantity_axis(const std::vector<double>& values);

/// Returns a logarithmic axis. Its ticks are powers of two if all values are.
Axis logarithmic_axis(const std::vector<double>& values);

/// Returns an axis with one place for each name.
Axis category_axis(const std::vector<std::string>& names);

}  // namespace pipewright::draw
