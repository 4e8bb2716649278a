#include <array>

#include "parts.hpp"
#include "pixels.hpp"

namespace pipewright::draw {

void draw_idle(Scene& scene, const plan::Timeline& timeline, double top, const Figure& figure) {
  Boxes ground{{.name = "idle", .fill = idle_fill}};
  for (int rank = 0; rank < timeline.ranks; ++rank)
    ground.add({plot_left, figure.rank_top(top, rank), figure.time.x(timeline.length) - plot_left,
                figure.rows.bar});
  scene.add(std::move(ground));

  std::array<Boxes, idle_tints.size()> causes;
  for (std::size_t cause = 0; cause < causes.size(); ++cause)
    causes[cause].look = {.name = plan::idle_causes()[cause], .fill = idle_tints[cause]};
  for (const plan::IdleSpan& idle : timeline.idle) {
    const double x = figure.time.x(idle.start);
    const double width = figure.time.x(idle.end) - x;
    if (pixels(width) != "0")
      causes[static_cast<std::size_t>(idle.cause)].add(
          {x, figure.rank_top(top, idle.rank), width, figure.rows.bar, tooltip_of(idle)});
  }
  for (Boxes& boxes : causes)
    scene.add(std::move(boxes));
}

}  // namespace pipewright::draw
