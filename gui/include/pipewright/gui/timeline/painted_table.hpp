#pragma once

// An EventTable made ready to be painted: a class for each event, and sums of busy time per track
// and row.

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
  /// What may be said of it.
  const plan::TimelineFacts& facts() const { return facts_; }

  /// Tracks of a rank, as places in table().tracks.
  struct RankTracks {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  RankTracks tracks_of(int rank) const { return rank_tracks_[static_cast<std::size_t>(rank)]; }
  const BusySums& sums(std::size_t track) const { return tracks_[track]; }
  /// By cause. Its event i is table().idle[idle_begin(rank) + i].
  const BusySums& idle(int rank) const { return idle_[static_cast<std::size_t>(rank)]; }
  std::uint64_t idle_begin(int rank) const { return idle_begin_[static_cast<std::size_t>(rank)]; }

  /// Classes of another meaning, such as how far off the prediction was; one per event.
  void set_classes(std::vector<std::uint8_t> classes);
  /// Back to kinds of actions, where they are not that already.
  void set_kinds();
  /// Whether some action that computes is of this kind, where the events are actions.
  bool has_kind(std::size_t kind) const { return has_kind_[kind]; }

  /// The event of a track at an instant; nothing where the track is idle, or waits for a shard.
  std::optional<std::uint64_t> event_at(std::size_t track, double time) const;
  /// The idle time of a rank at an instant, as a place in table().idle.
  std::optional<std::uint64_t> idle_at(int rank, double time) const;
  /// Whether the events of a track make its rank busy: those of compute, or all where a rank has no
  /// compute, as a thread of a foreign trace.
  bool is_busy_track(std::size_t track) const;
  /// For how many seconds of [first, last) at least one event makes the rank busy.
  double busy(int rank, double first, double last) const;
  /// The track that an event belongs to.
  std::size_t track_of(std::uint64_t event) const;

 private:
  /// When events end, but where their rank waits at their end for one that is late.
  void find_work_ends();
  /// Each track, on several threads; before its sums are made, its events are given classes.
  void sum_tracks(const std::function<void(const plan::EventTrack&)>& classify);

  /// The union of several tracks' events, of one class.
  struct Union {
    std::vector<double> start, end;
    std::vector<std::uint8_t> classes;
    BusySums sums;
  };
  void unite_tracks();

  plan::EventTable table_;
  std::vector<double> work_end_;  // by event; empty: as they end
  std::span<const double> end_;   // what of events is painted
  plan::TimelineFacts facts_;
  std::vector<std::uint8_t> classes_;
  bool are_kinds_ = false;
  std::array<bool, class_count> has_kind_{};
  std::vector<BusySums> tracks_;
  std::vector<RankTracks> rank_tracks_;
  std::vector<bool> has_compute_;               // by rank
  std::vector<std::unique_ptr<Union>> unions_;  // by rank; null where one track or none is busy
  std::vector<double> idle_start_, idle_end_;
  std::vector<std::uint8_t> idle_class_;
  std::vector<BusySums> idle_;
  std::vector<std::uint64_t> idle_begin_;
};

}  // namespace pipewright::gui
