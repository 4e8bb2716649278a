#include "parts.hpp"

namespace pipewright::plan::drawing {
namespace {

struct Point {
  double x = 0;
  double y = 0;
};

/// A line that adds no point where it only goes on along its row.
class Course {
 public:
  void go_to(Point to) {
    if (!started_)
      path_.move_to(to.x, to.y);
    else if (pixels(to.y) == pixels(at_.y))
      along_ = true;
    else {
      finish_row();
      path_.line_to(to.x, to.y);
    }
    started_ = true;
    at_ = to;
  }
  const PathData& path() {
    finish_row();
    return path_;
  }

 private:
  void finish_row() {
    if (along_)
      path_.across_to(at_.x);
    along_ = false;
  }

  PathData path_;
  Point at_;
  bool started_ = false;
  bool along_ = false;
};

}  // namespace

void draw_critical_path(SvgWriter& svg, const Timeline& timeline, double top,
                        const Figure& figure) {
  Course course;
  for (const std::size_t index : timeline.critical) {
    const Span& span = timeline.spans[index];
    // On the lower edge of the bars, where no number stands.
    const double y = figure.rank_top(top, span.rank) + figure.rows.bar - 1.4;
    // A transfer leaves where the send begins and is there when the receive ends; how long the one
    // or the other stood waiting is not part of the path.
    if (span.lane != Lane::Receive)
      course.go_to({figure.time.x(span.start), y});
    if (span.lane != Lane::Send)
      course.go_to({figure.time.x(span.end), y});
  }
  // White on both sides parts the line from the bars that it crosses.
  svg.path(course.path(),
           "fill=\"none\" stroke=\"#ffffff\" stroke-width=\"3.6\" "
           "stroke-opacity=\"0.75\" stroke-linejoin=\"round\"");
  svg.path(course.path(),
           fmt::format("class=\"critical\" {} stroke-linejoin=\"round\"", critical_look));
}

}  // namespace pipewright::plan::drawing
