#pragma once

// Computes how long a track is busy with each class of events between any two instants, in time
// independent of the number of events. Colors within one pixel are mixed by these times, exactly,
// at every zoom level.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "pipewright/gui/look/event_classes.hpp"

namespace pipewright::gui {

/// Seconds by class of events.
using ClassTimes = std::array<double, class_count>;

/// Events that do not overlap, sorted by time. The columns must outlive it.
class BusySums {
 public:
  BusySums() = default;
  /// `classes` has one entry per event, each below `class_count`.
  BusySums(std::span<const double> start, std::span<const double> end,
           std::span<const std::uint8_t> classes);

  std::uint64_t size() const { return start_.size(); }
  double start(std::uint64_t event) const { return start_[event]; }
  double end(std::uint64_t event) const { return end_[event]; }
  std::uint8_t class_of(std::uint64_t event) const { return classes_[event]; }

  /// Returns the number of events that begin before `time`; fast if the answer is close to `guess`.
  std::uint64_t begun_before(double time, std::uint64_t guess = 0) const;

  /// Returns the time before an instant, by class; `begun` is the number of events that begin
  /// before it. A caller that moves from pixel to pixel looks up each pixel edge only once.
  ClassTimes until(double time, std::uint64_t begun) const;
  /// Returns the time between two instants, by class. `begun_first` and `begun_last` are the
  /// numbers of events that begin before each.
  ClassTimes between(double first, double last, std::uint64_t begun_first,
                     std::uint64_t begun_last) const;
  ClassTimes between(double first, double last) const {
    const std::uint64_t begun = begun_before(first);
    return between(first, last, begun, begun_before(last, begun));
  }

 private:
  /// Adds the whole of events [first, last).
  void add_whole(std::uint64_t first, std::uint64_t last, ClassTimes& sums) const;

  static constexpr std::uint64_t stride = 8;

  std::span<const double> start_;
  std::span<const double> end_;
  std::span<const std::uint8_t> classes_;
  // Sums before events 0, 8, 16, …, and when each of these begins.
  std::vector<ClassTimes> before_;
  std::vector<double> mark_start_;
};

}  // namespace pipewright::gui
