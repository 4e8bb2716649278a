#pragma once

// What can be said of what was pointed at, as values: an action, a bubble, an area.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/gui/document/workspace.hpp"

namespace pipewright::gui {

/// A rank's compute and idle time within [first, last). Together they are all of it.
struct Spent {
  double busy = 0;      // seconds of compute
  ClassTimes idle{};    // by IdleCause
  double unnamed = 0;   // idle for a cause that is not known
  double transfer = 0;  // of sends, beside what else it does
  double idle_sum() const;
  Spent& operator+=(const Spent& other);
};
Spent spent_by(const PaintedTable& table, int rank, double first, double last);
/// The sum over all ranks and the whole iteration.
Spent spent_by_all(const PaintedTable& table);
/// The cause with most idle time; nothing where there is none.
std::optional<plan::IdleCause> largest_cause(const Spent& spent);
/// "waits for the first microbatches to reach it": what a cause says of the rank that idles.
const char* meaning_of(plan::IdleCause cause);

/// What a rank holds when an area begins, when it ends, and at most in between.
struct HeldWithin {
  std::int64_t start = 0;  // bytes
  std::int64_t end = 0;
  std::int64_t peak = 0;
};
/// Nothing where no memory was sampled.
std::optional<HeldWithin> held_within(const plan::EventTable& table, int rank, double first,
                                      double last);

struct AreaRow {
  int rank = 0;
  Spent spent;
  std::optional<HeldWithin> held;
};
std::vector<AreaRow> area_rows(const PaintedTable& table, const PickedArea& area);

/// The event of the same rank and name in the other table, in the order of time.
std::optional<std::uint64_t> counterpart(const PaintedTable& of, std::uint64_t event,
                                         const PaintedTable& in);

/// Something that had to be over before an action could begin.
struct WaitedFor {
  std::uint64_t event = 0;  // of the front table
  double over = 0;          // seconds
};

struct ActionFacts {
  std::string name;
  int rank = 0;
  double start = 0;
  double end = 0;
  std::optional<std::uint64_t> other{};  // its event in the other table
  double other_start = 0;
  double other_end = 0;
  /// How much later it could end, where it is known: by the prediction.
  std::optional<double> slack{};
  bool critical = false;
  std::vector<WaitedFor> waited_for{};  // the last to be over first
};
ActionFacts facts_of(const Workspace& workspace, const PickedEvent& picked);

/// The event of the front table that a rank has of this name, the `nth` in time.
std::optional<std::uint64_t> find_event(const PaintedTable& table, int rank,
                                        const std::string& name, std::size_t nth = 0);
}  // namespace pipewright::gui
