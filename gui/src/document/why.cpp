#include "pipewright/gui/document/why.hpp"

#include <algorithm>
#include <numeric>

namespace pipewright::gui {
namespace {

double sum_of(const ClassTimes& times) { return std::accumulate(times.begin(), times.end(), 0.0); }

/// Returns how many events with the same rank and name begin before this one.
std::size_t place_among_equals(const PaintedTable& table, std::uint64_t event) {
  const plan::EventTable& of = table.table();
  const int rank = of.tracks[table.track_of(event)].rank;
  const auto tracks = table.tracks_of(rank);
  std::size_t before = 0;
  for (std::size_t track = tracks.begin; track < tracks.end; ++track)
    for (std::uint64_t at = of.tracks[track].begin; at < of.tracks[track].end; ++at) {
      if (of.start[at] >= of.start[event])
        break;
      before += of.name_of[at] == of.name_of[event] ? 1 : 0;
    }
  return before;
}

}  // namespace

double TimeBreakdown::idle_sum() const { return sum_of(idle) + unnamed; }

TimeBreakdown spent_by(const PaintedTable& table, int rank, double first, double last) {
  TimeBreakdown spent;
  first = std::clamp(first, 0.0, table.length());
  last = std::clamp(last, first, table.length());
  spent.busy = table.busy(rank, first, last);
  spent.idle = table.idle(rank).between(first, last);
  // If several tracks of a rank compute at the same time, the difference can be negative, which is
  // not idle time.
  const double rest = last - first - spent.busy - sum_of(spent.idle);
  spent.unnamed = rest > 1e-9 * table.length() ? rest : 0;
  const auto tracks = table.tracks_of(rank);
  for (std::size_t track = tracks.begin; track < tracks.end; ++track)
    if (table.table().tracks[track].row == plan::Row::Send)
      spent.transfer += sum_of(table.sums(track).between(first, last));
  return spent;
}

TimeBreakdown& TimeBreakdown::operator+=(const TimeBreakdown& other) {
  busy += other.busy;
  unnamed += other.unnamed;
  transfer += other.transfer;
  for (std::size_t cause = 0; cause < class_count; ++cause)
    idle[cause] += other.idle[cause];
  return *this;
}

TimeBreakdown spent_by_all(const PaintedTable& table) {
  TimeBreakdown all;
  for (int rank = 0; rank < table.table().ranks; ++rank)
    all += spent_by(table, rank, 0, table.length());
  return all;
}

std::optional<plan::IdleCause> largest_cause(const TimeBreakdown& spent) {
  const auto largest =
      std::max_element(spent.idle.begin(), spent.idle.begin() + plan::idle_cause_count);
  if (*largest <= 0)
    return {};
  return static_cast<plan::IdleCause>(largest - spent.idle.begin());
}

const char* meaning_of(plan::IdleCause cause) {
  switch (cause) {
    case plan::IdleCause::WarmUp:
      return "the pipeline fills: the first microbatches have not reached the rank yet";
    case plan::IdleCause::CoolDown:
      return "the pipeline drains: the rank waits for the last gradients, or for the end";
    case plan::IdleCause::Imbalance:
      return "another rank still computes what this one needs: the ranks are not equally loaded";
    case plan::IdleCause::Transfer:
      return "the rank's input is being transferred";
    case plan::IdleCause::Queue:
      return "the transfer of the rank's input waits for another transfer";
    case plan::IdleCause::Exposed:
      return "a transfer or collective during which the rank may not compute";
    case plan::IdleCause::Launch:
      return "nothing delayed the rank: it could have begun earlier";
    case plan::IdleCause::Shards:
      return "a tensor-parallel rank that takes part in the action is late";
  }
  return "";
}

std::optional<HeldWithin> held_within(const plan::EventTable& table, int rank, double first,
                                      double last) {
  const auto at = static_cast<std::size_t>(rank);
  if (at + 1 >= table.memory_begins.size() ||
      table.memory_begins[at] == table.memory_begins[at + 1])
    return {};
  const auto samples = table.memory.subspan(table.memory_begins[at],
                                            table.memory_begins[at + 1] - table.memory_begins[at]);
  const auto after = [&](double time) {
    return std::upper_bound(
        samples.begin(), samples.end(), time,
        [](double t, const plan::EventTable::Memory& sample) { return t < sample.time; });
  };
  const auto begin = after(first), end = after(last);
  HeldWithin held;
  held.start = begin == samples.begin() ? 0 : std::prev(begin)->bytes;
  held.end = end == samples.begin() ? 0 : std::prev(end)->bytes;
  held.peak = held.start;
  for (auto sample = begin; sample != end; ++sample)
    held.peak = std::max(held.peak, sample->bytes);
  return held;
}

std::vector<AreaRow> area_rows(const PaintedTable& table, const PickedArea& area) {
  std::vector<AreaRow> rows;
  for (const int rank : area.ranks)
    rows.push_back({rank, spent_by(table, rank, area.first, area.last),
                    held_within(table.table(), rank, area.first, area.last)});
  return rows;
}

std::optional<std::uint64_t> find_event(const PaintedTable& table, int rank,
                                        const std::string& name, std::size_t nth) {
  const plan::EventTable& of = table.table();
  if (rank < 0 || rank >= of.ranks)
    return {};
  const auto found = std::find(of.names.begin(), of.names.end(), name);
  const auto wanted = static_cast<std::uint32_t>(found - of.names.begin());
  std::vector<std::uint64_t> equals;
  const auto tracks = table.tracks_of(rank);
  for (std::size_t track = tracks.begin; track < tracks.end; ++track)
    for (std::uint64_t at = of.tracks[track].begin; at < of.tracks[track].end; ++at)
      if (of.name_of[at] == wanted)
        equals.push_back(at);
  std::sort(equals.begin(), equals.end(),
            [&](std::uint64_t a, std::uint64_t b) { return of.start[a] < of.start[b]; });
  return nth < equals.size() ? std::optional(equals[nth]) : std::nullopt;
}

std::optional<std::uint64_t> counterpart(const PaintedTable& of, std::uint64_t event,
                                         const PaintedTable& in) {
  return find_event(in, of.table().tracks[of.track_of(event)].rank, of.table().name_at(event),
                    place_among_equals(of, event));
}

namespace {

/// Returns the events that `event` of the Program waited for, the latest end first.
std::vector<WaitedFor> waited_for(const Workspace& workspace, const sim::Structure& structure,
                                  int event) {
  const sim::Times& times = *workspace.times();
  std::vector<WaitedFor> found;
  structure.events().for_each_predecessor(event, [&](int before, plan::Until until) {
    const std::int64_t at = workspace.table_event(before);
    if (at >= 0)
      found.push_back({static_cast<std::uint64_t>(at),
                       until == plan::Until::Done ? times[before].end : times[before].released});
  });
  std::sort(found.begin(), found.end(),
            [](const WaitedFor& a, const WaitedFor& b) { return a.over > b.over; });
  return found;
}

}  // namespace

ActionFacts facts_of(const Workspace& workspace, const PickedEvent& picked) {
  const PaintedTable& own = picked.ghost ? *workspace.ghost() : *workspace.front();
  const plan::EventTable& table = own.table();
  ActionFacts facts{.name = table.name_at(picked.event),
                    .rank = table.tracks[own.track_of(picked.event)].rank,
                    .start = table.start[picked.event],
                    .end = table.end[picked.event]};
  if (const auto& other = picked.ghost ? workspace.front() : workspace.ghost()) {
    facts.other = counterpart(own, picked.event, *other);
    if (facts.other) {
      facts.other_start = other->table().start[*facts.other];
      facts.other_end = other->table().end[*facts.other];
    }
  }
  facts.critical =
      std::find(table.critical.begin(), table.critical.end(), picked.event) != table.critical.end();
  const sim::Structure* structure = workspace.structure();
  const int event = picked.ghost ? -1 : workspace.structure_event(picked.event);
  if (structure == nullptr || event < 0)
    return facts;
  // A run's Program is that of the plan as long as the plan is unchanged.
  if (workspace.answer() != nullptr &&
      (workspace.shown() == Workspace::Shown::Plan ||
       (!workspace.changed() &&
        workspace.answer()->plan.structure->program() == structure->program())))
    facts.slack = workspace.slack()[static_cast<std::size_t>(event)];
  facts.waited_for = waited_for(workspace, *structure, event);
  return facts;
}

}  // namespace pipewright::gui
