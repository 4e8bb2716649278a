#include "pipewright/gui/timeline/busy_sums.hpp"

#include <algorithm>
#include <random>

#include "gui/support/tables.hpp"
#include "support/catch.hpp"

namespace busy_sums_test {

using namespace pipewright;
using gui::BusySums;
using gui::ClassTimes;
using test::RandomTrack;

ClassTimes naive_between(const RandomTrack& track, double first, double last) {
  ClassTimes sums{};
  for (std::size_t event = 0; event < track.start.size(); ++event)
    sums[track.classes[event]] +=
        std::max(0.0, std::min(track.end[event], last) - std::max(track.start[event], first));
  return sums;
}

TEST_CASE("The time between any two instants equals a plain sum over all events",
          "[gui][timeline]") {
  std::mt19937 random(7);
  for (const int events : {0, 1, 2, 31, 32, 33, 64, 100, 1000}) {
    const RandomTrack track(random, events);
    const BusySums sums = track.sums();
    std::uniform_real_distribution<double> instant(-1, track.length() + 1);
    for (int round = 0; round < 60; ++round) {
      double first = instant(random), last = instant(random);
      if (round % 4 == 0 && events > 0)  // begin or end of an event
        first = track.start[random() % track.start.size()];
      if (round % 5 == 0 && events > 0)
        last = track.end[random() % track.end.size()];
      if (first > last)
        std::swap(first, last);
      const ClassTimes found = sums.between(first, last),
                       expected = naive_between(track, first, last);
      for (std::size_t c = 0; c < gui::class_count; ++c) {
        CAPTURE(events, first, last, c);
        CHECK(found[c] == Approx(expected[c]).margin(1e-9));
      }
    }
  }
}

TEST_CASE("Events that begin before an instant are counted, whatever the guess",
          "[gui][timeline]") {
  std::mt19937 random(8);
  const RandomTrack track(random, 200);
  const BusySums sums = track.sums();
  std::uniform_real_distribution<double> instant(-1, track.length() + 1);
  for (int round = 0; round < 200; ++round) {
    const double time =
        round % 3 == 0 ? track.start[random() % track.start.size()] : instant(random);
    const auto expected = static_cast<std::uint64_t>(
        std::count_if(track.start.begin(), track.start.end(), [&](double s) { return s < time; }));
    for (const std::uint64_t guess : {std::uint64_t{0}, expected, expected + 5, std::uint64_t{999}})
      CHECK(sums.begun_before(time, guess) == expected);
  }
}

TEST_CASE("Adjacent pixels add up to their total", "[gui][timeline]") {
  std::mt19937 random(9);
  const RandomTrack track(random, 500);
  const BusySums sums = track.sums();
  for (const int pixels : {1, 3, 17, 640, 4000}) {
    ClassTimes added{};
    std::uint64_t begun = 0;
    for (int pixel = 0; pixel < pixels; ++pixel) {
      const double from = track.length() * pixel / pixels,
                   to = track.length() * (pixel + 1) / pixels;
      const std::uint64_t before = begun;
      begun = sums.begun_before(to, begun);
      const ClassTimes part = sums.between(from, to, before, begun);
      for (std::size_t c = 0; c < gui::class_count; ++c)
        added[c] += part[c];
    }
    const ClassTimes whole = naive_between(track, 0, track.length());
    for (std::size_t c = 0; c < gui::class_count; ++c)
      CHECK(added[c] == Approx(whole[c]).margin(1e-9));
  }
}

}  // namespace busy_sums_test
