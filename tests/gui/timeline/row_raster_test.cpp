#include "pipewright/gui/timeline/row_raster.hpp"

#include <random>

#include "gui/support/tables.hpp"
#include "support/catch.hpp"

namespace row_raster_test {

using namespace pipewright;
using gui::BusySums;
using gui::TimeScale;
using test::RandomTrack;

constexpr QRgb idle_color = qRgb(240, 240, 240), outside = qRgb(255, 0, 255);

/// Returns colors without hatches, so that each class has exactly one color.
gui::ClassColors flat_colors() {
  gui::ClassColors colors;
  for (std::size_t c = 0; c < gui::class_count; ++c)
    colors.fill[c] = qRgb(static_cast<int>(10 * c), static_cast<int>(100 - 10 * c), 40);
  return colors;
}

QImage painted(const BusySums& sums, TimeScale scale, double length, int width,
               const gui::ClassColors& colors = flat_colors(), const BusySums* ground = nullptr,
               const gui::ClassColors& grounds = {}) {
  QImage image(width, 8, QImage::Format_RGB32);
  image.fill(qRgb(1, 2, 3));
  gui::RowRaster raster;
  raster.paint(image, {0, width, 0, 8}, scale,
               {sums, colors, ground, grounds, idle_color, outside, length});
  return image;
}

/// Returns the color by a sum over all events.
std::array<double, 3> mixed_by_time(const RandomTrack& track, double from, double to) {
  const auto colors = flat_colors();
  std::array<double, 3> color{};
  double busy = 0;
  const auto add = [&](QRgb of, double part) {
    color[0] += part * qRed(of);
    color[1] += part * qGreen(of);
    color[2] += part * qBlue(of);
    busy += part;
  };
  for (std::size_t event = 0; event < track.start.size(); ++event) {
    const double part =
        (std::min(track.end[event], to) - std::max(track.start[event], from)) / (to - from);
    if (part > 0)
      add(colors.fill[track.classes[event]], part);
  }
  add(idle_color, 1 - busy);
  return color;
}

TEST_CASE("A pixel is the exact mix, by time, of its events", "[gui][timeline]") {
  std::mt19937 random(3);
  for (const int events : {1, 5, 40, 300, 3000}) {
    const RandomTrack track(random, events);
    const BusySums sums = track.sums();
    constexpr int width = 97;
    // From the whole timeline down to where an event is less than a pixel and edges are not drawn
    // yet.
    const double shortest = track.length() / width;
    for (const double seen : {1.0, 0.37, 0.11}) {
      const TimeScale scale = gui::fitted(track.length() * 0.2 * (1 - seen),
                                          track.length() * (0.2 * (1 - seen) + seen), width);
      if (events < 300 && scale.per_pixel < shortest * 0.9)
        continue;
      const QImage image = painted(sums, scale, track.length(), width);
      for (int x = 0; x < width; ++x) {
        // An edge is drawn where an event of four pixels follows at once: the pixel before it is
        // not a pure mix.
        const double after = scale.time(x + 1);
        const std::uint64_t begun = sums.begun_before(after + scale.per_pixel);
        bool edge = false;
        for (std::uint64_t e = begun > 1 ? begun - 2 : 0; e < std::min(begun + 1, sums.size()); ++e)
          edge = edge || (sums.end(e) - sums.start(e)) / scale.per_pixel >= 4;
        if (edge)
          continue;
        const auto expected = mixed_by_time(track, scale.time(x), after);
        const QRgb pixel = image.pixel(x, 3);
        CAPTURE(events, seen, x);
        CHECK(std::abs(qRed(pixel) - expected[0]) <= 1.01);
        CHECK(std::abs(qGreen(pixel) - expected[1]) <= 1.01);
        CHECK(std::abs(qBlue(pixel) - expected[2]) <= 1.01);
      }
    }
  }
}

TEST_CASE("A bubble stays light at every zoom level", "[gui][timeline]") {
  // Half of the time is one bubble; the other half is ten thousand small events.
  std::vector<double> start, end;
  for (int event = 0; event < 10'000; ++event) {
    const double at = event < 5'000 ? event : event + 10'000;
    start.push_back(at);
    end.push_back(at + 1);
  }
  const std::vector<std::uint8_t> classes(start.size(), 0);
  const BusySums sums(start, end, classes);
  gui::ClassColors dark;
  dark.fill.fill(qRgb(0, 0, 0));
  for (const int width : {1, 2, 5, 40, 400, 4000}) {
    const QImage image = painted(sums, gui::fitted(0, 20'000, width), 20'000, width, dark);
    double light = 0;
    for (int x = 0; x < width; ++x)
      light += qRed(image.pixel(x, 0)) / 240.0 / width;
    CAPTURE(width);
    CHECK(light == Approx(0.5).margin(0.01));
    if (width > 3)
      CHECK(image.pixel(width / 2, 0) == idle_color);
  }
}

TEST_CASE("Idle time shows its cause between the events, and only there", "[gui][timeline]") {
  const std::vector<double> start{0, 2}, end{1, 3}, idle_start{1}, idle_end{2};
  const std::vector<std::uint8_t> classes{0, 0}, causes{1};
  const BusySums sums(start, end, classes), idle(idle_start, idle_end, causes);
  gui::ClassColors work, why;
  work.fill.fill(qRgb(0, 0, 0));
  why.fill.fill(qRgb(200, 100, 0));
  const QImage wide = painted(sums, gui::fitted(0, 3, 300), 3, 300, work, &idle, why);
  CHECK(wide.pixel(50, 0) == qRgb(0, 0, 0));
  CHECK(wide.pixel(150, 0) == qRgb(200, 100, 0));
  const QImage one = painted(sums, gui::fitted(0, 3, 1), 3, 1, work, &idle, why);
  CHECK(qRed(one.pixel(0, 0)) == Approx(200 / 3.0).margin(1));
  CHECK(qGreen(one.pixel(0, 0)) == Approx(100 / 3.0).margin(1));
}

TEST_CASE("Beyond the iteration nothing is painted as work or idle time", "[gui][timeline]") {
  const std::vector<double> start{0}, end{1};
  const std::vector<std::uint8_t> classes{0};
  const BusySums sums(start, end, classes);
  const QImage image = painted(sums, gui::fitted(-1, 2, 300), 1, 300);
  CHECK(image.pixel(50, 0) == outside);
  CHECK(image.pixel(150, 0) == flat_colors().fill[0]);
  CHECK(image.pixel(250, 0) == outside);
}

TEST_CASE("Wide events are reported with their visible part", "[gui][timeline]") {
  const std::vector<double> start{0, 10, 10.2}, end{10, 10.2, 20};
  const std::vector<std::uint8_t> classes{0, 1, 2};
  const BusySums sums(start, end, classes);
  QImage image(100, 4, QImage::Format_RGB32);
  gui::RowRaster raster;
  const auto wide = raster.paint(image, {0, 100, 0, 4}, gui::fitted(5, 15, 100),
                                 {sums, flat_colors(), nullptr, {}, idle_color, outside, 20, 22});
  REQUIRE(wide.size() == 2);
  CHECK(wide[0].event == 0);
  CHECK(wide[0].x == 0);
  CHECK(wide[0].width == Approx(50));
  CHECK(wide[1].event == 2);
  CHECK(wide[1].width == Approx(48));
}

TEST_CASE("A band leaves the rest of the image unchanged, and may extend beyond it",
          "[gui][timeline]") {
  const std::vector<double> start{0}, end{1};
  const std::vector<std::uint8_t> classes{1};
  const BusySums sums(start, end, classes);
  QImage image(40, 20, QImage::Format_RGB32);
  image.fill(qRgb(9, 9, 9));
  gui::RowRaster raster;
  auto hatched = flat_colors();
  hatched.hatch.fill(gui::Hatch::Cross);
  for (const auto& colors : {flat_colors(), hatched}) {
    raster.paint(image, {10, 20, -5, 10}, gui::fitted(0, 1, 20),
                 {sums, colors, nullptr, {}, idle_color, outside, 1, 22});
    raster.paint(image, {10, 20, 15, 10}, gui::fitted(0, 1, 20),
                 {sums, colors, nullptr, {}, idle_color, outside, 1, 22});
  }
  CHECK(image.pixel(9, 2) == qRgb(9, 9, 9));
  CHECK(image.pixel(30, 2) == qRgb(9, 9, 9));
  CHECK(image.pixel(15, 10) == qRgb(9, 9, 9));
  CHECK(image.pixel(15, 2) != qRgb(9, 9, 9));
  CHECK(image.pixel(15, 19) != qRgb(9, 9, 9));
}

}  // namespace row_raster_test
