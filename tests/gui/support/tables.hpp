#pragma once

// Timelines for display tests: random ones, and a small pipeline made by hand.

#include <random>
#include <string>
#include <vector>

#include "pipewright/gui/timeline/busy_sums.hpp"
#include "pipewright/plan/timeline/event_table.hpp"

namespace pipewright::test {

/// Events of one track, with gaps between some of them.
struct RandomTrack {
  std::vector<double> start, end;
  std::vector<std::uint8_t> classes;

  RandomTrack(std::mt19937& random, int events) {
    std::uniform_real_distribution<double> length(0, 1);
    double at = length(random);
    for (int event = 0; event < events; ++event) {
      start.push_back(at);
      at += length(random) * (event % 7 == 0 ? 20 : 1);
      end.push_back(at);
      if (random() % 3 != 0)
        at += length(random) * (event % 11 == 0 ? 30 : 0.5);
      classes.push_back(static_cast<std::uint8_t>(random() % gui::class_count));
    }
  }
  gui::BusySums sums() const { return {start, end, classes}; }
  double length() const { return end.empty() ? 1 : end.back() + 0.5; }
};

/// Returns four ranks of 1F1B with six microbatches and a transfer between adjacent ranks; a
/// forward takes 1 ms and a backward 2 ms. Rank 2 is slower by the factor `slow`.
plan::Timeline small_pipeline(double slow = 1);

}  // namespace pipewright::test
