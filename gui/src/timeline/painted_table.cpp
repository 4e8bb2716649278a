#include "pipewright/gui/timeline/painted_table.hpp"

#include <algorithm>
#include <functional>
#include <string_view>

#include "pipewright/gui/look/theme.hpp"
#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::gui {
namespace {

/// Of the names that come by the hundred thousand, such as "12F34"; nothing for all others.
std::optional<std::uint8_t> class_of_common(std::string_view name) {
  const auto digits = [&](std::size_t at) {
    while (at < name.size() && name[at] >= '0' && name[at] <= '9')
      ++at;
    return at;
  };
  const std::size_t begin = digits(0);
  if (begin == 0 || begin >= name.size())
    return {};
  const std::string_view rest = name.substr(begin);
  const bool transfer = rest.starts_with("SEND_") || rest.starts_with("RECV_");
  const std::size_t end = begin + (transfer ? 6 : 1);
  if (end >= name.size() || digits(end) != name.size())
    return {};
  const std::string_view kind = name.substr(begin, end - begin);
  static constexpr std::string_view actions = "FBIWR";
  if (transfer ? kind.back() != 'F' && kind.back() != 'B'
               : actions.find(kind.front()) == std::string_view::npos)
    return {};
  return kind_class(kind);
}

/// By its kind; what is no instruction by its name, so that equal names look alike.
std::uint8_t class_of_name(const std::string& name) {
  if (const auto common = class_of_common(name))
    return *common;
  if (plan::parse_instruction(name))
    return kind_class(plan::kind_of(name));
  return static_cast<std::uint8_t>(std::hash<std::string>{}(name) % class_count);
}

}  // namespace

PaintedTable::PaintedTable(plan::EventTable table) : table_(std::move(table)) {
  const auto ranks = static_cast<std::size_t>(table_.ranks);
  rank_tracks_.resize(ranks);
  for (std::size_t track = 0; track < table_.tracks.size(); ++track) {
    RankTracks& tracks = rank_tracks_[static_cast<std::size_t>(table_.tracks[track].rank)];
    if (tracks.end == 0)
      tracks.begin = track;
    tracks.end = track + 1;
  }
  set_kinds();

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

void PaintedTable::set_kinds() {
  std::vector<std::uint8_t> of_name;
  of_name.reserve(table_.names.size());
  for (const std::string& name : table_.names)
    of_name.push_back(class_of_name(name));
  std::vector<std::uint8_t> classes(table_.size());
  std::transform(table_.name_of.begin(), table_.name_of.end(), classes.begin(),
                 [&](std::uint32_t name) { return of_name[name]; });
  set_classes(std::move(classes));
}

void PaintedTable::set_classes(std::vector<std::uint8_t> classes) {
  classes_ = std::move(classes);
  tracks_.clear();
  for (const plan::EventTrack& track : table_.tracks) {
    const std::uint64_t count = track.end - track.begin;
    tracks_.emplace_back(table_.start.subspan(track.begin, count),
                         table_.end.subspan(track.begin, count),
                         std::span<const std::uint8_t>(classes_).subspan(track.begin, count));
  }
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

double PaintedTable::busy(int rank, double first, double last) const {
  double seconds = 0;
  const RankTracks tracks = tracks_of(rank);
  for (std::size_t track = tracks.begin; track < tracks.end; ++track)
    if (table_.tracks[track].row == plan::Row::Compute)
      for (const double part : tracks_[track].between(first, last))
        seconds += part;
  return seconds;
}

std::size_t PaintedTable::track_of(std::uint64_t event) const {
  const auto after = std::upper_bound(
      table_.tracks.begin(), table_.tracks.end(), event,
      [](std::uint64_t at, const plan::EventTrack& track) { return at < track.end; });
  return static_cast<std::size_t>(after - table_.tracks.begin());
}

std::size_t PaintedTable::own_bytes() const {
  constexpr std::size_t per_mark = sizeof(ClassTimes) / 32 + 1;
  return classes_.size() * (1 + per_mark) +
         idle_start_.size() * (2 * sizeof(double) + 1 + per_mark);
}

}  // namespace pipewright::gui
