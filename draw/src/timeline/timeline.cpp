// Draws timelines: a legend, a panel per timeline, and their common time axis.

#include "pipewright/draw/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "parts.hpp"
#include "text/figure_text.hpp"
#include "text/text_width.hpp"

namespace pipewright::draw {

void draw_grid(Scene& scene, double top, double bottom, const Figure& figure) {
  Lines grid{{.stroke = grid_line, .stroke_width = 0.6}};
  for (int i = 0; i < figure.tick_count(); ++i) {
    grid.move_to(figure.time.x({i * figure.tick}), top);
    grid.up_or_down_to(bottom);
  }
  scene.add(std::move(grid));
}

namespace {

void draw_heading(Scene& scene, const plan::Timeline& timeline, double y) {
  plan::Seconds bubble;
  for (const plan::Seconds rank : bubble_per_rank(timeline))
    bubble += rank;
  const std::string summary =
      fmt::format("iteration {}, mean bubble {}", time_text(timeline.length),
                  percent_text(bubble, timeline.length * timeline.ranks));
  const double room = plot_width - text_width(summary, 12) - 20;
  scene.words(plot_left, y, shortened(timeline.name, 14, room, true),
              {.size = 14, .fill = dark, .bold = true});
  scene.words(plot_right, y, summary, {.size = 12, .anchor = Anchor::End});
  const TextLook column{.size = 10.5, .fill = soft, .anchor = Anchor::End};
  scene.words(busy_column, y, "busy", column);
  scene.words(bubble_column, y, "bubble", column);
  scene.words(peak_column, y, "peak memory", column);
}

/// Writes the name of a rank to the left of its row and its figures to the right.
void draw_rank_figures(Scene& scene, const plan::Timeline& timeline, double top,
                       const Figure& figure) {
  const auto busy = busy_per_rank(timeline);
  const auto bubble = bubble_per_rank(timeline);
  const auto peak = peak_per_rank(timeline);
  const TextLook look{.size = figure.rows.font, .anchor = Anchor::End};
  for (std::size_t rank = 0; rank < busy.size(); ++rank) {
    const double y = figure.rank_top(top, static_cast<int>(rank)) + figure.rows.bar / 2 +
                     figure.rows.font * 0.36;
    scene.words(plot_left - 8, y, fmt::format("rank {}", rank), look);
    scene.words(busy_column, y, percent_text(busy[rank], timeline.length), look);
    scene.words(bubble_column, y, percent_text(bubble[rank], timeline.length), look);
    scene.words(peak_column, y, has_memory(timeline) ? memory_text(peak[rank]) : "-", look);
  }
}

void draw_ranks(Scene& scene, const plan::Timeline& timeline, double top, const Figure& figure) {
  draw_idle(scene, timeline, top, figure);
  draw_grid(scene, top, top + figure.ranks_height(timeline.ranks), figure);
  const auto labels = draw_bars(scene, timeline, top, figure);
  draw_wires(scene, timeline, top, figure);
  draw_critical_path(scene, timeline, top, figure);
  draw_labels(scene, labels);
  draw_rank_figures(scene, timeline, top, figure);
}

/// Draws one timeline and returns the y below it.
double draw_panel(Scene& scene, const plan::Timeline& timeline, double top, const Figure& figure) {
  draw_heading(scene, timeline, top + 12);
  double y = top + 20;
  draw_ranks(scene, timeline, y, figure);
  y += figure.ranks_height(timeline.ranks);
  if (has_memory(timeline)) {
    scene.words(plot_left, y + 18, "memory held", {.size = 10.5, .fill = soft});
    y += 25;
    draw_memory_strips(scene, timeline, y, figure);
    y += figure.strips_height(timeline.ranks);
  }
  return y + 26;
}

/// Draws the time axis that all panels share and returns the y below it.
double draw_axis(Scene& scene, double y, const Figure& figure) {
  const bool in_seconds = figure.length.value >= 1;
  const double unit = in_seconds ? 1 : 1e-3;
  Lines axis{{.fill = "none", .stroke = axis_line, .stroke_width = 1}};
  axis.move_to(plot_left, y);
  axis.across_to(plot_right);
  for (int i = 0; i < figure.tick_count(); ++i) {
    const double x = figure.time.x({i * figure.tick});
    axis.move_to(x, y);
    axis.up_or_down_to(y + 5);
    scene.words(x, y + 18, tick_text(i * figure.tick / unit, figure.tick / unit),
                {.anchor = Anchor::Middle});
  }
  scene.add(std::move(axis));
  scene.words(plot_right + 24, y + 18, in_seconds ? "time in s" : "time in ms", {});
  return y + 34;
}

}  // namespace

Scene timeline_scene(const std::vector<plan::Timeline>& timelines, const std::string& title) {
  const Figure figure = lay_out(timelines);
  Scene scene{.title = title, .width = page_width};
  scene.words(plot_left, page_margin + 16,
              shortened(title, 18, page_width - page_margin - plot_left, true),
              {.size = 18, .fill = dark, .bold = true});
  double y = draw_legend(scene, timelines, page_margin + 40, figure) + 20;
  for (const plan::Timeline& timeline : timelines)
    y = draw_panel(scene, timeline, y, figure);
  scene.height = draw_axis(scene, y - 14, figure);
  return scene;
}

}  // namespace pipewright::draw
