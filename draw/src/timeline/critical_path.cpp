#include "parts.hpp"
#include "pixels.hpp"

namespace pipewright::draw {
namespace {

struct Point {
  double x = 0;
  double y = 0;
};

/// A polyline that merges consecutive points in the same row.
class Course {
 public:
  void go_to(Point to) {
    if (!started_)
      line_.move_to(to.x, to.y);
    else if (pixels(to.y) == pixels(at_.y))
      along_ = true;
    else {
      finish_row();
      line_.line_to(to.x, to.y);
    }
    started_ = true;
    at_ = to;
  }
  std::vector<Stroke> strokes() {
    finish_row();
    return line_.strokes;
  }

 private:
  void finish_row() {
    if (along_)
      line_.across_to(at_.x);
    along_ = false;
  }

  Lines line_;
  Point at_;
  bool started_ = false;
  bool along_ = false;
};

}  // namespace

void draw_critical_path(Scene& scene, const plan::Timeline& timeline, double top,
                        const Figure& figure) {
  Course course;
  for (const std::size_t index : timeline.critical) {
    const plan::Span& span = timeline.spans[index];
    // The line runs along the lower edge of the bars, where there are no numbers.
    const double y = figure.rank_top(top, span.rank) + figure.rows.bar - 1.4;
    // A transfer is drawn from the start of the send to the end of the receive. The time that
    // either of them waits is not part of the path.
    if (span.row != plan::Row::Receive)
      course.go_to({figure.time.x(span.start), y});
    if (span.row != plan::Row::Send)
      course.go_to({figure.time.x(span.end), y});
  }
  // A white outline separates the line from the bars that it crosses.
  scene.add(Lines{{.fill = "none",
                   .stroke = "#ffffff",
                   .stroke_width = 3.6,
                   .stroke_opacity = 0.75,
                   .round_joins = true},
                  course.strokes()});
  Look look = critical_look();
  look.name = "critical";
  look.round_joins = true;
  scene.add(Lines{std::move(look), course.strokes()});
}

}  // namespace pipewright::draw
