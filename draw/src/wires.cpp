#include "parts.hpp"

namespace pipewright::draw {

void draw_wires(Scene& scene, const plan::Timeline& timeline, double top, const Figure& figure) {
  for (const plan::Lane lane : figure.wires) {
    Boxes boxes{{.name = lane == plan::Lane::Send ? "send" : "reduce",
                 .fill = lane == plan::Lane::Send ? send_fill : reduce_fill}};
    for (const plan::Span& span : timeline.spans) {
      if (span.lane != lane)
        continue;
      const double x = figure.time.x(span.start);
      boxes.add({x, figure.rank_top(top, span.rank) + figure.wire_offset(lane),
                 figure.time.x(span.end) - x, figure.rows.wire - 1, tooltip_of(span)});
    }
    scene.add(std::move(boxes));
  }
}

}  // namespace pipewright::draw
