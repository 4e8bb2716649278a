#include "parts.hpp"
#include "pixels.hpp"

namespace pipewright::draw {
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
    // The line lies on the lower edge of the bars, where no number stands.
    const double y = figure.rank_top(top, span.rank) + figure.rows.bar - 1.4;
    // A transfer leaves where the send begins and is there when the receive ends; how long the one
    // or the other stood waiting is not part of the path.
    if (span.row != plan::Row::Receive)
      course.go_to({figure.time.x(span.start), y});
    if (span.row != plan::Row::Send)
      course.go_to({figure.time.x(span.end), y});
  }
  // White on both sides parts the line from the bars that it crosses.
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
