#pragma once

// Axes of a chart: from values to pixels, and where the ticks stand.

#include <string>
#include <vector>

namespace pipewright::draw {

struct Tick {
  double value = 0;
  std::string text;
};

struct Axis {
  double from = 0;  // values
  double to = 1;
  double pixel_from = 0;
  double pixel_to = 0;
  bool logarithmic = false;
  std::vector<Tick> ticks{};

  /// The pixel of a value.
  double at(double value) const;
};

/// An axis from a round number to a round number around these values; from 0 unless they lie close
/// together and far from it.
Axis value_axis(const std::vector<double>& values);

/// An axis from the least of these values to the largest, with ticks at round numbers between them.
Axis quantity_axis(const std::vector<double>& values);

/// The same with equal factors equally far apart. Ticks are powers of two where all values are.
Axis logarithmic_axis(const std::vector<double>& values);

/// One place for each name.
Axis category_axis(const std::vector<std::string>& names);

}  // namespace pipewright::draw
