#pragma once

// How long a track is busy with each class of events between any two instants, in a time that does
// not grow with their number: what lies within one pixel is mixed by time, exactly, at every zoom.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "pipewright/gui/look/event_classes.hpp"

namespace pipewright::gui {

/// Seconds by class of events.
using ClassTimes = std::array<double, class_count>;

/// Events that do not overlap, in order of time. The columns must outlive it.
class BusySums {
 public:
  BusySums() = default;
  /// `classes` by event, each below `class_count`.
  BusySums(std::span<const double> start, std::span<const double> end,
           std::span<const std::uint8_t> classes);

  std::uint64_t size() const { return start_.size(); }
  double start(std::uint64_t event) const { return start_[event]; }
  double end(std::uint64_t event) const { return end_[event]; }
  std::uint8_t class_of(std::uint64_t event) const { return classes_[event]; }

  /// Events that begin before `time`; quick where the answer is near `guess`.
  std::uint64_t begun_before(double time, std::uint64_t guess = 0) const;

  /// What lies before an instant, by class; `begun` events begin before it. Whoever goes from pixel
  /// to pixel looks up each border once.
  ClassTimes until(double time, std::uint64_t begun) const;
  /// What lies between two instants, by class. `begun_first` and `begun_last` are the events begun
  /// before each.
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
  // What lies before events 0, 8, 16, …, and when each begins.
  std::vector<ClassTimes> before_;
  std::vector<double> mark_start_;
};

}  // namespace pipewright::gui
