#include "pipewright/gui/timeline/time_scale.hpp"

#include "support/catch.hpp"

namespace time_scale_test {

using namespace pipewright::gui;

TEST_CASE("The time under the mouse stays there while zooming", "[gui][timeline]") {
  for (const double factor : {0.1, 0.8, 1.0, 1.25, 7.0, 1e6})
    for (const double x : {0.0, 13.0, 399.0, 800.0}) {
      CAPTURE(factor, x);
      const TimeScale before = fitted(0, 2, 800);
      const TimeScale after = zoomed(before, factor, x, 2, 800);
      CHECK(after.time(x) == Approx(before.time(x)).margin(1e-12));
    }
}

TEST_CASE("Zooming out ends slightly beyond the whole, zooming in at a picosecond per pixel",
          "[gui][timeline]") {
  TimeScale out = fitted(0, 2, 800), in = out;
  for (int i = 0; i < 300; ++i) {
    out = zoomed(out, 0.5, 400, 2, 800);
    in = zoomed(in, 2, 400, 2, 800);
  }
  CHECK(out.per_pixel * 800 == Approx(2.2));
  CHECK(in.per_pixel == Approx(1e-12));
}

TEST_CASE("However far it is panned, half of the view shows the timeline", "[gui][timeline]") {
  const TimeScale scale = fitted(0, 2, 800);
  CHECK(panned(scale, 100, 2, 800).first == Approx(0.25));
  CHECK(panned(scale, 1e9, 2, 800).first == Approx(1.0));
  CHECK(panned(scale, -1e9, 2, 800).first == Approx(-1.0));
}

TEST_CASE("A centered time is in the middle, at the same scale", "[gui][timeline]") {
  const TimeScale scale = centered(fitted(0, 2, 800), 1.75, 800);
  CHECK(scale.time(400) == Approx(1.75));
  CHECK(scale.per_pixel == fitted(0, 2, 800).per_pixel);
}

TEST_CASE("Pixels and times are converted into each other", "[gui][timeline]") {
  const TimeScale scale = fitted(3, 5, 1000);
  CHECK(scale.x(3) == Approx(0).margin(1e-9));
  CHECK(scale.x(5) == Approx(1000));
  CHECK(scale.time(scale.x(4.25)) == Approx(4.25));
  CHECK(fitted(1, 1, 0).per_pixel > 0);  // an empty interval in no space
}

}  // namespace time_scale_test
