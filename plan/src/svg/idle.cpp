#include <array>

#include "parts.hpp"

namespace pipewright::plan::drawing {

void draw_idle(SvgWriter& svg, const Timeline& timeline, double top, const Figure& figure) {
  PathData ground;
  for (int rank = 0; rank < timeline.ranks; ++rank)
    ground.box(plot_left, figure.rank_top(top, rank), figure.time.x(timeline.length) - plot_left,
               figure.rows.bar);
  svg.path(ground, fmt::format("class=\"idle\" fill=\"{}\"", idle_fill));

  std::array<PathData, idle_tints.size()> causes;
  for (const IdleSpan& idle : timeline.idle) {
    const double x = figure.time.x(idle.start);
    const double width = figure.time.x(idle.end) - x;
    if (pixels(width) != "0")
      causes[static_cast<std::size_t>(idle.cause)].box(x, figure.rank_top(top, idle.rank), width,
                                                       figure.rows.bar);
  }
  for (std::size_t cause = 0; cause < causes.size(); ++cause)
    svg.path(causes[cause],
             fmt::format("class=\"{}\" fill=\"{}\"", idle_causes()[cause], idle_tints[cause]));
}

}  // namespace pipewright::plan::drawing
