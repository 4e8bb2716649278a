#pragma once

// A line chart over one varied quantity, such as the result of a sweep.

#include <string>
#include <utility>
#include <vector>

#include "pipewright/draw/scene.hpp"

namespace pipewright::draw {

struct ChartLine {
  std::string name;
  /// x and y in any order. The line is interrupted at an x of another line where it has no y, or no
  /// finite y: that combination is not possible.
  std::vector<std::pair<double, double>> points;
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool log_x = false;
  /// Names of x = 0, 1, 2, … if x is a choice, such as of a schedule, and not a quantity.
  std::vector<std::string> categories{};
  std::vector<ChartLine> lines;
};

/// Draws the chart. Throws InputError if an x is not finite, is not positive on a logarithmic axis,
/// or names no category.
Scene chart_scene(const Chart& chart);

}  // namespace pipewright::draw
