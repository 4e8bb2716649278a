// Timelines as a figure: a legend, one panel a timeline, and the axis that all of them share.

#include <algorithm>

#include "figure_text.hpp"
#include "parts.hpp"
#include "pipewright/plan/timeline.hpp"
#include "text_width.hpp"

namespace pipewright::plan {
namespace drawing {

void draw_grid(SvgWriter& svg, double top, double bottom, const Figure& figure) {
  PathData grid;
  for (int i = 0; i < figure.tick_count(); ++i) {
    grid.move_to(figure.time.x({i * figure.tick}), top);
    grid.up_or_down_to(bottom);
  }
  svg.path(grid, fmt::format("stroke=\"{}\" stroke-width=\"0.6\"", grid_line));
}

namespace {

void draw_heading(SvgWriter& svg, const Timeline& timeline, double y) {
  Seconds bubble;
  for (const Seconds rank : bubble_per_rank(timeline))
    bubble += rank;
  const std::string summary =
      fmt::format("iteration {}, mean bubble {}", time_text(timeline.length),
                  percent_text(bubble, timeline.length * timeline.ranks));
  const double room = plot_width - text_width(summary, 12) - 20;
  svg.text(plot_left, y, shortened(timeline.name, 14, room, true),
           {.size = 14, .fill = dark, .bold = true});
  svg.text(plot_right, y, summary, {.size = 12, .anchor = Anchor::End});
  const TextLook column{.size = 10.5, .fill = soft, .anchor = Anchor::End};
  svg.text(busy_column, y, "busy", column);
  svg.text(bubble_column, y, "bubble", column);
  svg.text(peak_column, y, "peak memory", column);
}

/// The name of a rank to the left of its row, its figures to the right.
void draw_rank_figures(SvgWriter& svg, const Timeline& timeline, double top, const Figure& figure) {
  const auto busy = busy_per_rank(timeline);
  const auto bubble = bubble_per_rank(timeline);
  const auto peak = peak_per_rank(timeline);
  const TextLook look{.size = figure.rows.font, .anchor = Anchor::End};
  for (std::size_t rank = 0; rank < busy.size(); ++rank) {
    const double y = figure.rank_top(top, static_cast<int>(rank)) + figure.rows.bar / 2 +
                     figure.rows.font * 0.36;
    svg.text(plot_left - 8, y, fmt::format("rank {}", rank), look);
    svg.text(busy_column, y, percent_text(busy[rank], timeline.length), look);
    svg.text(bubble_column, y, percent_text(bubble[rank], timeline.length), look);
    svg.text(peak_column, y, has_memory(timeline) ? memory_text(peak[rank]) : "-", look);
  }
}

void draw_ranks(SvgWriter& svg, const Timeline& timeline, double top, const Figure& figure) {
  draw_idle(svg, timeline, top, figure);
  draw_grid(svg, top, top + figure.ranks_height(timeline.ranks), figure);
  const auto labels = draw_bars(svg, timeline, top, figure);
  draw_wires(svg, timeline, top, figure);
  draw_critical_path(svg, timeline, top, figure);
  draw_labels(svg, labels);
  draw_rank_figures(svg, timeline, top, figure);
}

/// One timeline; returns the y where the next thing may begin.
double draw_panel(SvgWriter& svg, const Timeline& timeline, double top, const Figure& figure) {
  draw_heading(svg, timeline, top + 12);
  double y = top + 20;
  draw_ranks(svg, timeline, y, figure);
  y += figure.ranks_height(timeline.ranks);
  if (has_memory(timeline)) {
    svg.text(plot_left, y + 18, "memory held", {.size = 10.5, .fill = soft});
    y += 25;
    draw_memory_strips(svg, timeline, y, figure);
    y += figure.strips_height(timeline.ranks);
  }
  return y + 26;
}

/// One axis under all panels, which share its scale; returns the y below it.
double draw_axis(SvgWriter& svg, double y, const Figure& figure) {
  const bool in_seconds = figure.length.value >= 1;
  const double unit = in_seconds ? 1 : 1e-3;
  PathData axis;
  axis.move_to(plot_left, y);
  axis.across_to(plot_right);
  for (int i = 0; i < figure.tick_count(); ++i) {
    const double x = figure.time.x({i * figure.tick});
    axis.move_to(x, y);
    axis.up_or_down_to(y + 5);
    svg.text(x, y + 18, tick_text(i * figure.tick / unit, figure.tick / unit),
             {.anchor = Anchor::Middle});
  }
  svg.path(axis, fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"1\"", axis_line));
  svg.text(plot_right + 24, y + 18, in_seconds ? "time in s" : "time in ms", {});
  return y + 34;
}

}  // namespace
}  // namespace drawing

std::string to_svg(const std::vector<Timeline>& timelines, const std::string& title) {
  using namespace drawing;
  const Figure figure = lay_out(timelines);
  SvgWriter svg;
  svg.text(plot_left, page_margin + 16,
           shortened(title, 18, page_width - page_margin - plot_left, true),
           {.size = 18, .fill = dark, .bold = true});
  double y = draw_legend(svg, timelines, page_margin + 40, figure) + 20;
  for (const Timeline& timeline : timelines)
    y = draw_panel(svg, timeline, y, figure);
  const double bottom = draw_axis(svg, y - 14, figure);
  return svg.document(page_width, bottom, title);
}

}  // namespace pipewright::plan
