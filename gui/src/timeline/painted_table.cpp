#include "pipewright/gui/timeline/painted_table.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <numeric>
#include <string_view>
#include <thread>

#include "pipewright/gui/look/theme.hpp"
#include "pipewright/plan/program/instruction.hpp"
#include "pipewright/plan/timeline/shard_waits.hpp"

namespace pipewright::gui {
namespace {

/// Returns the class of a name that is not an instruction: equal names have the same class, and so
/// do step marks.
std::uint8_t class_of_name(const std::string& name) {
  if (plan::step_number(name))
    return class_count - 1;
  return static_cast<std::uint8_t>(std::hash<std::string>{}(name) % class_count);
}

/// Returns the class of each name by its kind. A simulated table contains the kinds; a table from a
/// file has only names.
std::vector<std::uint8_t> classes_of_names(const plan::EventTable& table) {
  std::vector<std::uint8_t> classes;
  classes.reserve(table.names.size());
  if (table.kinds.size() == table.names.size()) {
    for (const plan::InstructionKind kind : table.kinds)
      classes.push_back(kind_class(kind));
    return classes;
  }
  for (const std::string& name : table.names) {
    const auto instruction = plan::parse_instruction(name);
    classes.push_back(instruction ? kind_class(instruction->kind) : class_of_name(name));
  }
  return classes;
}

struct Interval {
  double start = 0;
  double end = 0;
};

/// Returns the union of these intervals and of a track's events; both are sorted.
std::vector<Interval> united(const std::vector<Interval>& with, const plan::EventTrack& track,
                             std::span<const double> start, std::span<const double> end) {
  std::vector<Interval> all;
  const auto add = [&](const Interval& one) {
    if (all.empty() || one.start > all.back().end)
      all.push_back(one);
    else
      all.back().end = std::max(all.back().end, one.end);
  };
  auto next = with.begin();
  for (std::uint64_t event = track.begin; event < track.end; ++event) {
    for (; next != with.end() && next->start <= start[event]; ++next)
      add(*next);
    add({start[event], end[event]});
  }
  for (; next != with.end(); ++next)
    add(*next);
  return all;
}

/// Returns true if a table's events are actions; in a foreign trace classes have no meaning.
bool are_actions(const plan::EventTable& table) {
  return !table.kinds.empty() ||
         (!table.names.empty() && plan::parse_instruction(table.names.front()));
}

}  // namespace

PaintedTable::PaintedTable(plan::EventTable table)
    : table_(std::move(table)), facts_(plan::facts_of(table_)) {
  const auto ranks = static_cast<std::size_t>(table_.ranks);
  rank_tracks_.resize(ranks);
  for (std::size_t track = 0; track < table_.tracks.size(); ++track) {
    RankTracks& tracks = rank_tracks_[static_cast<std::size_t>(table_.tracks[track].rank)];
    if (tracks.end == 0)
      tracks.begin = track;
    tracks.end = track + 1;
  }
  find_work_ends();
  set_kinds();
  unite_tracks();

  idle_start_.reserve(table_.idle.size());
  idle_end_.reserve(table_.idle.size());
  idle_class_.reserve(table_.idle.size());
  idle_begin_.reserve(ranks + 1);
  for (const plan::EventTable::Idle& idle : table_.idle) {
    while (std::cmp_less_equal(idle_begin_.size(), idle.rank))
      idle_begin_.push_back(idle_start_.size());
    idle_start_.push_back(idle.start);
    idle_end_.push_back(idle.end);
    idle_class_.push_back(static_cast<std::uint8_t>(idle.cause));
  }
  idle_begin_.resize(ranks + 1, idle_start_.size());
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::uint64_t begin = idle_begin_[rank], count = idle_begin_[rank + 1] - begin;
    idle_.emplace_back(std::span<const double>(idle_start_).subspan(begin, count),
                       std::span<const double>(idle_end_).subspan(begin, count),
                       std::span<const std::uint8_t>(idle_class_).subspan(begin, count));
  }
}

void PaintedTable::find_work_ends() {
  end_ = table_.end;
  std::vector<plan::IdleSpan> waits;
  for (const plan::EventTable::Idle& idle : table_.idle)
    if (static_cast<plan::IdleCause>(idle.cause) == plan::IdleCause::Shards)
      waits.push_back({idle.rank, plan::IdleCause::Shards, {idle.start}, {idle.end}});
  if (waits.empty())
    return;
  const plan::WorkEnds ends(waits, table_.ranks);
  work_end_.assign(table_.end.begin(), table_.end.end());
  for (const plan::EventTrack& track : table_.tracks)
    for (std::uint64_t event = track.begin; event < track.end; ++event)
      if (track.row == plan::Row::Compute)
        work_end_[event] = ends.of(track.rank, {table_.start[event]}, {table_.end[event]}).value;
  end_ = work_end_;
}

void PaintedTable::set_kinds() {
  if (are_kinds_)
    return;
  const std::vector<std::uint8_t> of_name = classes_of_names(table_);
  classes_.resize(table_.size());
  sum_tracks([&](const plan::EventTrack& track) {
    for (std::uint64_t event = track.begin; event < track.end; ++event)
      classes_[event] = of_name[table_.name_of[event]];
  });
  are_kinds_ = true;
  has_kind_.fill(false);
  if (!are_actions(table_))
    return;
  for (std::size_t track = 0; track < tracks_.size(); ++track)
    if (table_.tracks[track].row == plan::Row::Compute &&
        table_.tracks[track].name != plan::steps_track)
      for (std::size_t c = 0; const double seconds : tracks_[track].between(0, length()))
        has_kind_[c++] |= seconds > 0;
}

void PaintedTable::set_classes(std::vector<std::uint8_t> classes) {
  classes_ = std::move(classes);
  sum_tracks([](const plan::EventTrack&) {});
  are_kinds_ = false;
}

void PaintedTable::sum_tracks(const std::function<void(const plan::EventTrack&)>& classify) {
  tracks_.assign(table_.tracks.size(), {});
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t at = next++; at < tracks_.size(); at = next++) {
      const plan::EventTrack& track = table_.tracks[at];
      classify(track);
      const std::uint64_t count = track.end - track.begin;
      tracks_[at] =
          BusySums(table_.start.subspan(track.begin, count), end_.subspan(track.begin, count),
                   std::span<const std::uint8_t>(classes_).subspan(track.begin, count));
    }
  };
  constexpr std::uint64_t worth_a_thread = 200'000;
  std::vector<std::jthread> helpers;
  if (table_.size() > worth_a_thread)
    for (unsigned core = 1; core < std::min(8U, std::thread::hardware_concurrency()); ++core)
      helpers.emplace_back(work);
  work();
}

std::optional<std::uint64_t> PaintedTable::event_at(std::size_t track, double time) const {
  const BusySums& sums = tracks_[track];
  const std::uint64_t begun = sums.begun_before(time);
  if (begun == 0 || sums.end(begun - 1) < time)
    return {};
  return table_.tracks[track].begin + begun - 1;
}

std::optional<std::uint64_t> PaintedTable::idle_at(int rank, double time) const {
  const BusySums& sums = idle(rank);
  const std::uint64_t begun = sums.begun_before(time);
  if (begun == 0 || sums.end(begun - 1) < time)
    return {};
  return idle_begin(rank) + begun - 1;
}

bool PaintedTable::is_busy_track(std::size_t track) const {
  const plan::EventTrack& of = table_.tracks[track];
  return of.row == plan::Row::Compute || !has_compute_[static_cast<std::size_t>(of.rank)];
}

void PaintedTable::unite_tracks() {
  has_compute_.assign(rank_tracks_.size(), false);
  for (const plan::EventTrack& track : table_.tracks)
    if (track.row == plan::Row::Compute)
      has_compute_[static_cast<std::size_t>(track.rank)] = true;
  unions_.resize(rank_tracks_.size());
  for (std::size_t rank = 0; rank < rank_tracks_.size(); ++rank) {
    std::vector<std::size_t> busy;
    for (std::size_t track = rank_tracks_[rank].begin; track < rank_tracks_[rank].end; ++track)
      if (is_busy_track(track))
        busy.push_back(track);
    if (busy.size() < 2)
      continue;
    std::vector<Interval> all;
    for (const std::size_t track : busy)
      all = united(all, table_.tracks[track], table_.start, end_);
    auto made = std::make_unique<Union>();
    for (const Interval& interval : all) {
      made->start.push_back(interval.start);
      made->end.push_back(interval.end);
    }
    made->classes.resize(all.size());
    made->sums = BusySums(made->start, made->end, made->classes);
    unions_[rank] = std::move(made);
  }
}

double PaintedTable::busy(int rank, double first, double last) const {
  const auto seconds = [&](const BusySums& sums) {
    const ClassTimes parts = sums.between(first, last);
    return std::accumulate(parts.begin(), parts.end(), 0.0);
  };
  if (const auto& of_rank = unions_[static_cast<std::size_t>(rank)])
    return seconds(of_rank->sums);
  const RankTracks tracks = tracks_of(rank);
  for (std::size_t track = tracks.begin; track < tracks.end; ++track)
    if (is_busy_track(track))
      return seconds(tracks_[track]);
  return 0;
}

std::size_t PaintedTable::track_of(std::uint64_t event) const {
  const auto after = std::upper_bound(
      table_.tracks.begin(), table_.tracks.end(), event,
      [](std::uint64_t at, const plan::EventTrack& track) { return at < track.end; });
  return static_cast<std::size_t>(after - table_.tracks.begin());
}

}  // namespace pipewright::gui
