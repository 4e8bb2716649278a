#include "parts.hpp"

namespace pipewright::draw {

void draw_wires(Scene& scene, const plan::Timeline& timeline, double top, const Figure& figure) {
  for (const plan::Row row : figure.wires) {
    Boxes boxes{{.name = row == plan::Row::Send ? "send" : "reduce",
                 .fill = row == plan::Row::Send ? send_fill : reduce_fill}};
    for (const plan::Span& span : timeline.spans) {
      if (span.row != row)
        continue;
      const double x = figure.time.x(span.start);
      boxes.add({x, figure.rank_top(top, span.rank) + figure.wire_offset(row),
                 figure.time.x(span.end) - x, figure.rows.wire - 1, tooltip_of(span)});
    }
    scene.add(std::move(boxes));
  }
}

}  // namespace pipewright::draw
