#pragma once

// An EventTable prepared for painting: a class for each event, and sums of busy time per track and
// row.

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "pipewright/gui/timeline/busy_sums.hpp"
#include "pipewright/plan/timeline/event_table.hpp"
#include "pipewright/plan/timeline/timeline_facts.hpp"

namespace pipewright::gui {

class PaintedTable {
 public:
  /// Classes are kinds of actions (Theme::kinds).
  explicit PaintedTable(plan::EventTable table);
  PaintedTable(const PaintedTable&) = delete;
  PaintedTable& operator=(const PaintedTable&) = delete;

  const plan::EventTable& table() const { return table_; }
  double length() const { return table_.length.value; }
  /// Returns facts about the table.
  const plan::TimelineFacts& facts() const { return facts_; }

  /// Tracks of a rank, as indices in table().tracks.
  struct RankTracks {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  RankTracks tracks_of(int rank) const { return rank_tracks_[static_cast<std::size_t>(rank)]; }
  const BusySums& sums(std::size_t track) const { return tracks_[track]; }
  /// Returns the idle time by cause. Its event i is table().idle[idle_begin(rank) + i].
  const BusySums& idle(int rank) const { return idle_[static_cast<std::size_t>(rank)]; }
  std::uint64_t idle_begin(int rank) const { return idle_begin_[static_cast<std::size_t>(rank)]; }

  /// Sets classes with another meaning, such as the difference from the prediction; one per event.
  void set_classes(std::vector<std::uint8_t> classes);
  /// Sets the classes back to kinds of actions, unless they already are.
  void set_kinds();
  /// Returns true if some compute action is of this kind, provided that the events are actions.
  bool has_kind(std::size_t kind) const { return has_kind_[kind]; }

  /// Returns the event of a track at an instant; nothing if the track is idle or waits for another
  /// tensor-parallel rank.
  std::optional<std::uint64_t> event_at(std::size_t track, double time) const;
  /// Returns the idle time of a rank at an instant, as an index in table().idle.
  std::optional<std::uint64_t> idle_at(int rank, double time) const;
  /// Returns true if the events of a track make its rank busy: compute, or all events if the rank
  /// has no compute (a thread of a foreign trace).
  bool is_busy_track(std::size_t track) const;
  /// Returns for how many seconds of [first, last) at least one event makes the rank busy.
  double busy(int rank, double first, double last) const;
  /// Returns the track that an event belongs to.
  std::size_t track_of(std::uint64_t event) const;

 private:
  /// Finds the ends of events without the final wait for other ranks that are late.
  void find_work_ends();
  /// Processes the tracks on several threads. `classify` sets the classes of a track's events
  /// before the sums are computed.
  void sum_tracks(const std::function<void(const plan::EventTrack&)>& classify);

  /// The union of several tracks' events, in one class.
  struct Union {
    std::vector<double> start, end;
    std::vector<std::uint8_t> classes;
    BusySums sums;
  };
  void unite_tracks();

  plan::EventTable table_;
  std::vector<double> work_end_;  // by event; empty: as events end
  std::span<const double> end_;   // painted end of each event
  plan::TimelineFacts facts_;
  std::vector<std::uint8_t> classes_;
  bool are_kinds_ = false;
  std::array<bool, class_count> has_kind_{};
  std::vector<BusySums> tracks_;
  std::vector<RankTracks> rank_tracks_;
  std::vector<bool> has_compute_;               // by rank
  std::vector<std::unique_ptr<Union>> unions_;  // by rank; null if at most one track makes it busy
  std::vector<double> idle_start_, idle_end_;
  std::vector<std::uint8_t> idle_class_;
  std::vector<BusySums> idle_;
  std::vector<std::uint64_t> idle_begin_;
};

}  // namespace pipewright::gui
