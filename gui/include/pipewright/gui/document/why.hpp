#pragma once

// Explains a selected action, bubble or area, as values.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/gui/document/workspace.hpp"

namespace pipewright::gui {

/// A rank's compute and idle time within [first, last), which add up to the whole interval.
struct TimeBreakdown {
  double busy = 0;      // seconds of compute
  ClassTimes idle{};    // by IdleCause
  double unnamed = 0;   // idle for an unknown cause
  double transfer = 0;  // sends, which overlap with the rest
  double idle_sum() const;
  TimeBreakdown& operator+=(const TimeBreakdown& other);
};
TimeBreakdown spent_by(const PaintedTable& table, int rank, double first, double last);
/// Returns the sum over all ranks and the whole iteration.
TimeBreakdown spent_by_all(const PaintedTable& table);
/// Returns the cause with the most idle time; nothing without idle time.
std::optional<plan::IdleCause> largest_cause(const TimeBreakdown& spent);
/// Describes a cause of a rank's idle time, such as "the rank's input is being transferred".
const char* meaning_of(plan::IdleCause cause);

/// A rank's memory at the begin and end of an area, and its peak in between.
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

/// Returns the event with the same rank, name and ordinal in time in the other table.
std::optional<std::uint64_t> counterpart(const PaintedTable& of, std::uint64_t event,
                                         const PaintedTable& in);

/// Something that had to end before an action could begin.
struct WaitedFor {
  std::uint64_t event = 0;  // in the front table
  double over = 0;          // end, in seconds
};

struct ActionFacts {
  std::string name;
  int rank = 0;
  double start = 0;
  double end = 0;
  std::optional<std::uint64_t> other{};  // its event in the other table
  double other_start = 0;
  double other_end = 0;
  /// How much later it could end without lengthening the iteration, by the prediction; empty if
  /// that is unknown.
  std::optional<double> slack{};
  bool critical = false;
  std::vector<WaitedFor> waited_for{};  // latest end first
};
ActionFacts facts_of(const Workspace& workspace, const PickedEvent& picked);

/// Returns the `nth` event in time with this rank and name in the front table.
std::optional<std::uint64_t> find_event(const PaintedTable& table, int rank,
                                        const std::string& name, std::size_t nth = 0);
}  // namespace pipewright::gui
