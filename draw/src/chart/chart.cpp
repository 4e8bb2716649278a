// Draws a chart: title and legend, the plot with its two axes, the lines.

#include "pipewright/draw/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "marks/axis.hpp"
#include "marks/legend.hpp"
#include "marks/looks.hpp"
#include "pipewright/draw/scene.hpp"
#include "pipewright/plan/error.hpp"
#include "text/text_width.hpp"

namespace pipewright::draw {
namespace {

constexpr double chart_width = 860;
constexpr double chart_margin = 20;
constexpr double chart_right = chart_width - chart_margin - 12;
constexpr double plot_height = 330;
constexpr double plot_inset = 14;  // between the frame and the first and last x
constexpr double tick_font = 11;
constexpr double axis_label_font = 12;
constexpr double slant = 35;          // in degrees, of names that do not fit next to each other
constexpr double longest_name = 170;  // in pixels; longer ones are shortened
constexpr double radians_per_degree = 0.017453292519943295;

/// Colors of the lines in this order. They are dark enough on white and differ in lightness or hue
/// also under color blindness. Each has its own marker shape for black-and-white prints.
constexpr std::array<const char*, 7> line_colors{"#1f5fa8", "#d9600f", "#12806a", "#b5457f",
                                                 "#5b3fa3", "#8a6d0b", "#39424e"};

const char* color_of(std::size_t line) { return line_colors[line % line_colors.size()]; }

/// Returns the look of a line. From the eighth line on, the colors repeat and the lines are dashed.
Look look_of(std::size_t line, const char* name) {
  return {.name = name,
          .fill = "none",
          .stroke = color_of(line),
          .stroke_width = 1.8,
          .round_joins = true,
          .dashed = line / line_colors.size() % 2 == 1};
}

/// Returns the corners of the marker around its center, in units of its size.
const std::vector<std::pair<double, double>>& marker_shape(std::size_t line) {
  using Shape = std::vector<std::pair<double, double>>;
  static const std::array<Shape, 7> shapes{
      Shape{{-1, -0.4}, {-0.4, -1}, {0.4, -1}, {1, -0.4}, {1, 0.4}, {0.4, 1}, {-0.4, 1}, {-1, 0.4}},
      Shape{{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}},
      Shape{{0, -1.2}, {1.1, 0.8}, {-1.1, 0.8}},
      Shape{{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}},
      Shape{{0, 1.2}, {1.1, -0.8}, {-1.1, -0.8}},
      Shape{{-1.2, -0.4},
            {-0.4, -0.4},
            {-0.4, -1.2},
            {0.4, -1.2},
            {0.4, -0.4},
            {1.2, -0.4},
            {1.2, 0.4},
            {0.4, 0.4},
            {0.4, 1.2},
            {-0.4, 1.2},
            {-0.4, 0.4},
            {-1.2, 0.4}},
      Shape{{-1.3, -0.6}, {1.3, -0.6}, {1.3, 0.6}, {-1.3, 0.6}}};
  return shapes[line % shapes.size()];
}

void add_marker(Lines& path, std::size_t line, double x, double y) {
  constexpr double size = 3.6;
  bool first = true;
  for (const auto& [dx, dy] : marker_shape(line)) {
    if (first)
      path.move_to(x + size * dx, y + size * dy);
    else
      path.line_to(x + size * dx, y + size * dy);
    first = false;
  }
  path.close();
}

void check_x(const Chart& chart, double x) {
  if (!std::isfinite(x))
    throw plan::InputError(
        fmt::format("the chart \"{}\" has a point whose x is not a number", chart.title));
  if (!chart.categories.empty()) {
    if (x < 0 || x != std::floor(x) || x >= static_cast<double>(chart.categories.size()))
      throw plan::InputError(
          fmt::format("the chart \"{}\" has {} categories, and a point at x = {}", chart.title,
                      chart.categories.size(), x));
  } else if (chart.log_x && x <= 0) {
    throw plan::InputError(fmt::format(
        "the chart \"{}\" has a logarithmic axis, and a point at x = {}", chart.title, x));
  }
}

/// Returns every x at which at least one line has a point.
std::set<double> all_x(const Chart& chart) {
  std::set<double> all;
  for (const ChartLine& line : chart.lines)
    for (const auto& [x, y] : line.points) {
      check_x(chart, x);
      all.insert(x);
    }
  return all;
}

std::vector<double> all_y(const Chart& chart) {
  std::vector<double> all;
  for (const ChartLine& line : chart.lines)
    for (const auto& [x, y] : line.points)
      if (std::isfinite(y))
        all.push_back(y);
  return all;
}

struct Plot {
  Axis x;
  Axis y;
  double left = 0;
  double top = 0;
  double bottom = 0;
  bool slanted = false;  // of the names on the x axis
};

double widest_text(const std::vector<Tick>& ticks) {
  double widest = 0;
  for (const Tick& tick : ticks)
    widest = std::max(widest, text_width(tick.text, tick_font));
  return widest;
}

/// Returns how far below the axis the tick labels reach.
double tick_text_height(const Plot& plot) {
  if (!plot.slanted)
    return 20;
  const double angle = slant * radians_per_degree;
  return 14 + widest_text(plot.x.ticks) * std::sin(angle) + 0.3 * tick_font;
}

/// Computes the left edge of the plot. It leaves room for the label and the tick labels of the y
/// axis, or for the first name on the x axis if names are slanted.
void place_left(Plot& plot) {
  constexpr double axis_label = 22;
  plot.left = chart_margin + axis_label + widest_text(plot.y.ticks) + 10;
  const double side_by_side = (chart_right - plot.left) / std::max<double>(1, plot.x.ticks.size());
  plot.slanted = widest_text(plot.x.ticks) > side_by_side - 8;
  if (plot.slanted && !plot.x.ticks.empty()) {
    const double reach =
        text_width(plot.x.ticks.front().text, tick_font) * std::cos(slant * radians_per_degree);
    plot.left = std::max(plot.left, chart_margin + reach - side_by_side / 2);
  }
}

Plot lay_out_plot(const Chart& chart, double top) {
  const auto x_values = all_x(chart);
  const std::vector<double> xs(x_values.begin(), x_values.end());
  Plot plot;
  plot.top = top;
  plot.bottom = top + plot_height;
  plot.y = value_axis(all_y(chart));
  plot.y.pixel_from = plot.bottom;
  plot.y.pixel_to = plot.top;
  const bool named = !chart.categories.empty();
  plot.x = named         ? category_axis(chart.categories)
           : chart.log_x ? logarithmic_axis(xs)
                         : quantity_axis(xs);
  for (Tick& tick : plot.x.ticks)
    tick.text = shortened(tick.text, tick_font, longest_name);
  place_left(plot);
  plot.x.pixel_from = plot.left + (named ? 0 : plot_inset);
  plot.x.pixel_to = chart_right - (named ? 0 : plot_inset);
  return plot;
}

void draw_y_axis(Scene& scene, const Chart& chart, const Plot& plot) {
  Lines grid{{.name = "grid", .stroke = grid_line, .stroke_width = 0.6}};
  for (const Tick& tick : plot.y.ticks) {
    const double y = plot.y.at(tick.value);
    grid.move_to(plot.left, y);
    grid.across_to(chart_right);
    scene.words(plot.left - 8, y + 0.36 * tick_font, tick.text,
                {.size = tick_font, .anchor = Anchor::End});
  }
  scene.add(std::move(grid));
  scene.words(chart_margin + 12, (plot.top + plot.bottom) / 2,
              shortened(chart.y_label, axis_label_font, plot_height),
              {.size = axis_label_font, .anchor = Anchor::Middle, .turn = -90});
}

void draw_x_axis(Scene& scene, const Chart& chart, const Plot& plot) {
  Lines line{{.name = "axis", .fill = "none", .stroke = axis_line, .stroke_width = 1}};
  line.move_to(plot.left, plot.bottom);
  line.across_to(chart_right);
  for (const Tick& tick : plot.x.ticks) {
    const double x = plot.x.at(tick.value);
    line.move_to(x, plot.bottom);
    line.up_or_down_to(plot.bottom + 5);
    if (plot.slanted)
      scene.words(x + 3, plot.bottom + 14, tick.text,
                  {.size = tick_font, .anchor = Anchor::End, .turn = -slant});
    else
      scene.words(x, plot.bottom + 18, tick.text, {.size = tick_font, .anchor = Anchor::Middle});
  }
  scene.add(std::move(line));
  scene.words((plot.left + chart_right) / 2, plot.bottom + tick_text_height(plot) + 18,
              shortened(chart.x_label, axis_label_font, chart_right - plot.left),
              {.size = axis_label_font, .anchor = Anchor::Middle});
}

/// Draws a line in pieces with markers at its points. An x without a value ends a piece.
void draw_line(Scene& scene, const ChartLine& line, std::size_t index,
               const std::set<double>& every_x, const Plot& plot) {
  const std::map<double, double> value_at(line.points.begin(), line.points.end());
  Lines course{look_of(index, "line")};
  Lines markers{
      {.name = "points", .fill = color_of(index), .stroke = "#ffffff", .stroke_width = 0.7}};
  bool continues = false;
  for (const double value : every_x) {
    const auto found = value_at.find(value);
    if (found == value_at.end() || !std::isfinite(found->second)) {
      continues = false;
      continue;
    }
    const double x = plot.x.at(value);
    const double y = plot.y.at(found->second);
    if (continues)
      course.line_to(x, y);
    else
      course.move_to(x, y);
    add_marker(markers, index, x, y);
    continues = true;
  }
  scene.add(std::move(course));
  scene.add(std::move(markers));
}

/// Draws the legend and returns the baseline of its last line.
double draw_chart_legend(Scene& scene, const Chart& chart, double y) {
  Legend legend(scene, chart_margin, chart_width - chart_margin, y);
  for (std::size_t i = 0; i < chart.lines.size(); ++i)
    legend.line(chart.lines[i].name, look_of(i, ""), [&](double x, double middle) {
      Lines marker{{.fill = color_of(i)}};
      add_marker(marker, i, x, middle);
      scene.add(std::move(marker));
    });
  return legend.last_line();
}

}  // namespace

Scene chart_scene(const Chart& chart) {
  Scene scene{.title = chart.title, .width = chart_width};
  scene.words(chart_margin, chart_margin + 16,
              shortened(chart.title, 18, chart_width - 2 * chart_margin, true),
              {.size = 18, .fill = dark, .bold = true});
  const double legend_end = draw_chart_legend(scene, chart, chart_margin + 40);
  const Plot plot = lay_out_plot(chart, legend_end + 20);
  draw_y_axis(scene, chart, plot);
  draw_x_axis(scene, chart, plot);
  const auto every_x = all_x(chart);
  for (std::size_t i = 0; i < chart.lines.size(); ++i)
    draw_line(scene, chart.lines[i], i, every_x, plot);
  scene.height = plot.bottom + tick_text_height(plot) + 34;
  return scene;
}

}  // namespace pipewright::draw
