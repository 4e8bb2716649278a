#pragma once

// Lines over one varied quantity, as a sweep gives them. The sibling of the timeline figure.

#include <string>
#include <utility>
#include <vector>

#include "pipewright/draw/scene.hpp"

namespace pipewright::draw {

struct ChartLine {
  std::string name;
  /// x and y in any order. A line is broken where it has no y, or no number, at an x that another
  /// line has: what was tried there is not possible.
  std::vector<std::pair<double, double>> points;
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool log_x = false;
  /// Where x is no quantity but a choice, such as of a schedule: the names of x = 0, 1, 2, …
  std::vector<std::string> categories{};
  std::vector<ChartLine> lines;
};

/// Throws InputError when an x is no number, is not positive on a
/// logarithmic axis, or names no category.
Scene chart_scene(const Chart& chart);

}  // namespace pipewright::draw
