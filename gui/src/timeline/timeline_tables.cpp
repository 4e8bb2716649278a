#include "pipewright/gui/timeline/timeline_tables.hpp"

#include <algorithm>

#include "pipewright/gui/look/words.hpp"

namespace pipewright::gui {

std::optional<PickedSpan> TimelineTables::span_of(const Picked& picked) const {
  if (const auto* area = std::get_if<PickedArea>(&picked))
    return PickedSpan{area->first, area->last, area->ranks.empty() ? -1 : area->ranks.front()};
  if (const auto* idle = std::get_if<PickedIdle>(&picked))
    return PickedSpan{idle->start, idle->end, idle->rank};
  const auto* event = std::get_if<PickedEvent>(&picked);
  if (event == nullptr || !of(*event))
    return {};
  const PaintedTable& painted = *of(*event);
  const plan::EventTable& table = painted.table();
  return PickedSpan{table.start[event->event], table.end[event->event],
                    table.tracks[painted.track_of(event->event)].rank};
}

PickedEvent TimelineTables::after(const PickedEvent& event, int by) const {
  const PaintedTable& table = *of(event);
  const plan::EventTrack& track = table.table().tracks[table.track_of(event.event)];
  const auto at = static_cast<std::int64_t>(event.event) + by;
  return {event.ghost,
          static_cast<std::uint64_t>(std::clamp(at, static_cast<std::int64_t>(track.begin),
                                                static_cast<std::int64_t>(track.end) - 1))};
}

QString TimelineTables::describe(const Picked& picked) const {
  const auto* event = std::get_if<PickedEvent>(&picked);
  const auto* idle = std::get_if<PickedIdle>(&picked);
  if (event == nullptr && idle == nullptr)
    return {};
  const PickedSpan span = *span_of(picked);
  const plan::EventTable& table = (event != nullptr ? of(*event) : front)->table();
  const QString rank = QString::fromStdString(plan::rank_name(table, span.rank));
  const QString length = time_words(span.last - span.first);
  if (event == nullptr)
    return QString("%1 %2 for %3")
        .arg(rank, front->facts().is_iteration ? "idle" : "has no event", length);
  const std::string& name = table.name_at(event->event);
  const QString words = QString("%1 on %2: %3 from %4 to %5")
                            .arg(QString::fromStdString(name), rank, length, time_words(span.first),
                                 time_words(span.last));
  const QString meaning = action_words(name);
  return meaning.isEmpty() ? words : words + "\n" + meaning;
}

}  // namespace pipewright::gui
