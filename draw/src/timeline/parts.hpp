#pragma once

// The parts of a timeline's panel. Each function adds a part to the scene, in rows that begin at
// `top`.

#include "figure.hpp"
#include "pipewright/draw/scene.hpp"

namespace pipewright::draw {

/// Draws thin vertical lines at the ticks, between `top` and `bottom`.
void draw_grid(Scene& scene, double top, double bottom, const Figure& figure);

/// Draws the background of every row, which shows idle time and ends with the iteration. The causes
/// of idle time are drawn on top of it, if known.
void draw_idle(Scene& scene, const plan::Timeline& timeline, double top, const Figure& figure);

/// The number on a bar. Numbers are drawn above all bars and the critical path.
struct Label {
  double x = 0;
  double y = 0;
  std::string text;
  double font = 0;
  bool on_light = false;
};
/// Draws the compute spans of every rank and returns their labels.
std::vector<Label> draw_bars(Scene& scene, const plan::Timeline& timeline, double top,
                             const Figure& figure);
void draw_labels(Scene& scene, const std::vector<Label>& labels);

/// Returns the tooltip of a bar.
std::string tooltip_of(const plan::Span& span);
std::string tooltip_of(const plan::IdleSpan& idle);

/// Draws sends and reductions as thin lines below the bars of their rank, because they run
/// concurrently with its compute.
void draw_wires(Scene& scene, const plan::Timeline& timeline, double top, const Figure& figure);

/// Draws one line from the start of the iteration to its end: below each bar of the critical path,
/// and across ranks where the path goes through a transfer.
void draw_critical_path(Scene& scene, const plan::Timeline& timeline, double top,
                        const Figure& figure);
inline Look critical_look() { return {.fill = "none", .stroke = dark, .stroke_width = 1.8}; }

/// Draws a memory strip per rank. The full scale is the largest peak of all ranks and timelines.
void draw_memory_strips(Scene& scene, const plan::Timeline& timeline, double top,
                        const Figure& figure);

/// Draws the legend and returns the baseline of its last line.
double draw_legend(Scene& scene, const std::vector<plan::Timeline>& timelines, double y,
                   const Figure& figure);

}  // namespace pipewright::draw
