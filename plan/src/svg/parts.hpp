#pragma once

// What one timeline's panel is made of. Each part draws itself into rows that begin at `top`.

#include "figure.hpp"
#include "svg_writer.hpp"

namespace pipewright::plan::drawing {

/// Thin lines at the ticks, between `top` and `bottom`.
void draw_grid(SvgWriter& svg, double top, double bottom, const Figure& figure);

/// The ground of every row, which ends with the iteration and shows where a rank is idle; and on it
/// the causes, where they are known.
void draw_idle(SvgWriter& svg, const Timeline& timeline, double top, const Figure& figure);

/// The number on a bar. All of them stand above all bars and above the critical path.
struct Label {
  double x = 0;
  double y = 0;
  std::string text;
  double font = 0;
  bool on_light = false;
};
/// The compute spans of every rank; returns their labels.
std::vector<Label> draw_bars(SvgWriter& svg, const Timeline& timeline, double top,
                             const Figure& figure);
void draw_labels(SvgWriter& svg, const std::vector<Label>& labels);

/// Sends and reductions, thin under the bars of their rank: they run beside its work.
void draw_wires(SvgWriter& svg, const Timeline& timeline, double top, const Figure& figure);

/// One line from the start of the iteration to its end: under each bar of the path, and across the
/// ranks where the path goes through a transfer.
void draw_critical_path(SvgWriter& svg, const Timeline& timeline, double top, const Figure& figure);
constexpr const char* critical_look = "fill=\"none\" stroke=\"#1f2630\" stroke-width=\"1.8\"";

/// One strip of memory a rank, from 0 to the most that any rank of any timeline holds.
void draw_memory_strips(SvgWriter& svg, const Timeline& timeline, double top, const Figure& figure);

/// Returns where the letters of its last line stand.
double draw_legend(SvgWriter& svg, const std::vector<Timeline>& timelines, double y,
                   const Figure& figure);

}  // namespace pipewright::plan::drawing
