#pragma once

// Facts that explain a selected action, idle time or area of the timeline, as plain values without
// widgets.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/gui/document/workspace.hpp"

namespace pipewright::gui {

/// A rank's compute and idle seconds in an interval, which add up to its length.
struct TimeBreakdown {
  double busy = 0;      // compute
  ClassTimes idle{};    // idle time by IdleCause
  double unnamed = 0;   // idle time with an unknown cause
  double transfer = 0;  // sends; they overlap with the others and are not part of the sum
  /// Returns all idle time.
  double idle_sum() const;
  TimeBreakdown& operator+=(const TimeBreakdown& other);
};
/// Returns the breakdown of [first, last), clipped to the iteration.
TimeBreakdown spent_by(const PaintedTable& table, int rank, double first, double last);
/// Returns the sum of all ranks' breakdowns of the whole iteration.
TimeBreakdown spent_by_all(const PaintedTable& table);
/// Returns the cause with the most idle time; nothing if no idle time has a known cause.
std::optional<plan::IdleCause> largest_cause(const TimeBreakdown& spent);
/// Describes a cause of a rank's idle time, such as "the rank's input is being transferred".
const char* meaning_of(plan::IdleCause cause);

/// A rank's memory at the start and the end of an interval, and its peak in between.
struct HeldWithin {
  std::int64_t start = 0;  // bytes
  std::int64_t end = 0;
  std::int64_t peak = 0;
};
/// Returns nothing if no memory was sampled.
std::optional<HeldWithin> held_within(const plan::EventTable& table, int rank, double first,
                                      double last);

struct AreaRow {
  int rank = 0;
  TimeBreakdown spent;
  std::optional<HeldWithin> held;
};
std::vector<AreaRow> area_rows(const PaintedTable& table, const PickedArea& area);

/// Returns the event of table `in` that corresponds to `event` of table `of`: the one with the same
/// rank and name, and with as many of these before it.
std::optional<std::uint64_t> counterpart(const PaintedTable& of, std::uint64_t event,
                                         const PaintedTable& in);

/// An event that an action had to wait for.
struct WaitedFor {
  std::uint64_t event = 0;  // in the front table
  double over = 0;          // when the wait ended, in seconds: the event's end, or its release
};

/// Facts about an event of the front table or of the ghost (TimelineTables). Times are in seconds.
struct ActionFacts {
  std::string name;
  int rank = 0;
  double start = 0;
  double end = 0;
  std::optional<std::uint64_t> other{};  // its counterpart in the other one of the two tables
  double other_start = 0;
  double other_end = 0;
  /// How much later it could end without lengthening the iteration, according to the prediction;
  /// empty if no prediction of the same Program is known.
  std::optional<double> slack{};
  bool critical = false;
  std::vector<WaitedFor> waited_for{};  // latest end first
};
ActionFacts facts_of(const Workspace& workspace, const PickedEvent& picked);

/// Returns the event number `nth` (from 0, in order of time) with this rank and name; nothing if
/// there are fewer.
std::optional<std::uint64_t> find_event(const PaintedTable& table, int rank,
                                        const std::string& name, std::size_t nth = 0);
}  // namespace pipewright::gui
