#include "parts.hpp"

namespace pipewright::plan::drawing {

void draw_wires(SvgWriter& svg, const Timeline& timeline, double top, const Figure& figure) {
  for (const Lane lane : figure.wires) {
    PathData path;
    for (const Span& span : timeline.spans) {
      if (span.lane != lane)
        continue;
      const double x = figure.time.x(span.start);
      path.box(x, figure.rank_top(top, span.rank) + figure.wire_offset(lane),
               figure.time.x(span.end) - x, figure.rows.wire - 1);
    }
    svg.path(path, fmt::format("class=\"{}\" fill=\"{}\"", lane == Lane::Send ? "send" : "reduce",
                               lane == Lane::Send ? send_fill : reduce_fill));
  }
}

}  // namespace pipewright::plan::drawing
