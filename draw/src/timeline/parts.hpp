#pragma once

// What one timeline's panel is made of. Each part adds itself to the scene, in rows that begin at
// `top`.

#include "figure.hpp"
#include "pipewright/draw/scene.hpp"

namespace pipewright::draw {

/// Thin lines at the ticks, between `top` and `bottom`.
void draw_grid(Scene& scene, double top, double bottom, const Figure& figure);

/// The ground of every row, which ends with the iteration and shows where a rank is idle; and on it
/// the causes, where they are known.
void draw_idle(Scene& scene, const plan::Timeline& timeline, double top, const Figure& figure);

/// The number on a bar. All of them stand above all bars and above the critical path.
struct Label {
  double x = 0;
  double y = 0;
  std::string text;
  double font = 0;
  bool on_light = false;
};
/// The compute spans of every rank; returns their labels.
std::vector<Label> draw_bars(Scene& scene, const plan::Timeline& timeline, double top,
                             const Figure& figure);
void draw_labels(Scene& scene, const std::vector<Label>& labels);

/// What a bar says when it is pointed at.
std::string tooltip_of(const plan::Span& span);
std::string tooltip_of(const plan::IdleSpan& idle);

/// Sends and reductions, thin under the bars of their rank: they run beside its work.
void draw_wires(Scene& scene, const plan::Timeline& timeline, double top, const Figure& figure);

/// One line from the start of the iteration to its end: under each bar of the path, and across the
/// ranks where the path goes through a transfer.
void draw_critical_path(Scene& scene, const plan::Timeline& timeline, double top,
                        const Figure& figure);
inline Look critical_look() { return {.fill = "none", .stroke = dark, .stroke_width = 1.8}; }

/// One strip of memory per rank, from 0 to the most that any rank of any timeline holds.
void draw_memory_strips(Scene& scene, const plan::Timeline& timeline, double top,
                        const Figure& figure);

/// Returns where the letters of its last line stand.
double draw_legend(Scene& scene, const std::vector<plan::Timeline>& timelines, double y,
                   const Figure& figure);

}  // namespace pipewright::draw
