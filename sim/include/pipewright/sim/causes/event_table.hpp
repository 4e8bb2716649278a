#pragma once

// Times as the table that a window paints. Names and rows depend on the Structure alone, so they
// are made once; another answer only fills the columns of time.

#include <memory>
#include <span>
#include <vector>

#include "pipewright/plan/timeline/event_table.hpp"
#include "pipewright/sim/causes/idle.hpp"
#include "pipewright/sim/memory/memory.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

/// What a table says beside the times; all of it may be missing.
struct EventTableParts {
  const IdleTime* idle = nullptr;
  const MemoryCurves* memory = nullptr;
  std::span<const int> critical{};  // events of the Structure, in order of time
};

/// One per thread. It keeps what the tables of one Structure have in common; the tables live on
/// without it.
class EventTableMaker {
 public:
  /// `structure` must outlive it.
  explicit EventTableMaker(const Structure& structure);

  /// As `plan::table_of` of the Timeline with the same parts, but that names may be numbered in
  /// another order.
  plan::EventTable table_of(const Times& times, const EventTableParts& parts = {});

  /// Where the Structure's events lie in the last table. Valid until the next call.
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
  std::vector<int> sorted_;            // the events of a row that have no track yet
  std::vector<int> dealt_;             // … that have the one at hand
  std::vector<int> left_;              // … that have to wait for the next
  std::vector<std::uint64_t> places_;  // by event
};

}  // namespace pipewright::sim
