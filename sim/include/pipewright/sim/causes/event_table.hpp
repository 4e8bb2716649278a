#pragma once

// Converts Times to the table that a window paints. Names and rows depend on the Structure alone,
// so they are made once; each further conversion only fills the time columns.

#include <memory>
#include <span>
#include <vector>

#include "pipewright/plan/timeline/event_table.hpp"
#include "pipewright/sim/causes/idle.hpp"
#include "pipewright/sim/memory/memory.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// The optional parts of a table besides the times.
struct EventTableParts {
  const IdleTime* idle = nullptr;
  const MemoryCurves* memory = nullptr;
  std::span<const int> critical{};  // events of the Structure, in order of time
};

/// Makes event tables. Use one per thread. It keeps what all tables of one Structure share; the
/// tables may outlive it.
class EventTableMaker {
 public:
  /// `structure` must outlive it.
  explicit EventTableMaker(const Structure& structure);

  /// Returns the same table as `plan::table_of` of the Timeline with the same parts, except that
  /// names may be numbered in another order.
  plan::EventTable table_of(const Times& times, const EventTableParts& parts = {});

  /// Returns the position of each event of the Structure in the last table. Valid until the next
  /// call.
  const std::vector<std::uint64_t>& places() const { return places_; }

 private:
  /// The events of one rank in one row.
  struct RowOfRank {
    int rank = 0;
    plan::Row row = plan::Row::Compute;
    std::size_t begin = 0;  // in row_events_
    std::size_t end = 0;
  };

  void number_names();
  void make_rows();
  void fill_row(const RowOfRank& row, const Times& times, plan::EventColumns& columns,
                std::vector<plan::EventTrack>& tracks);

  const Structure& structure_;
  std::vector<std::string> names_;
  std::vector<plan::InstructionKind> kinds_;
  std::vector<std::uint32_t> name_of_;  // by event
  std::vector<RowOfRank> rows_;         // by rank, then by row
  std::vector<int> row_events_;
  std::vector<int> sorted_;            // events of the row that have no track yet
  std::vector<int> dealt_;             // events of the current track
  std::vector<int> left_;              // events left for later tracks
  std::vector<std::uint64_t> places_;  // by event
};

}  // namespace pipewright::sim
