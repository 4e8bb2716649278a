#include "pipewright/gui/timeline/legend.hpp"

#include <algorithm>

namespace pipewright::gui {
namespace {

constexpr double between = 14;

double width_of(const LegendEntry& entry, const QFontMetricsF& metrics) {
  return metrics.horizontalAdvance(entry.words) + (entry.height > 0 ? legend_box : 0);
}

}  // namespace

LegendContents::LegendContents(const PaintedTable& table) {
  for (std::size_t kind = 0; kind < class_count; ++kind)
    has_kind_[kind] = table.has_kind(kind);
  for (const plan::EventTrack& track : table.table().tracks)
    has_row_[static_cast<std::size_t>(track.row)] = true;
  for (const plan::EventTable::Idle& idle : table.table().idle)
    has_cause_[idle.cause] = true;
}

std::vector<LegendEntry> LegendContents::entries(const Theme& theme, bool heat) const {
  std::vector<LegendEntry> entries;
  if (heat) {
    entries.push_back({"than predicted", {}});
    for (std::size_t c = 0; c < class_count; ++c)
      if (c == 0 || c == class_count / 2 || c + 1 == class_count)
        entries.push_back({c == 0                 ? "much quicker"
                           : c + 1 == class_count ? "much slower"
                                                  : "as predicted",
                           theme.heat[c], 11});
  } else {
    for (std::size_t c = 0; c < class_count; ++c)
      if (has_kind_[c])
        entries.push_back({theme.kinds[c].meaning, theme.kinds[c].fill, 11});
    if (has_row_[static_cast<std::size_t>(plan::Row::Send)])
      entries.push_back({"send", theme.send, 4});
    if (has_row_[static_cast<std::size_t>(plan::Row::Receive)])
      entries.push_back({"receive", theme.receive, 4});
    if (has_row_[static_cast<std::size_t>(plan::Row::Reduce)])
      entries.push_back({"reduce", theme.reduce, 4});
  }
  if (std::find(has_cause_.begin(), has_cause_.end(), true) == has_cause_.end())
    return entries;
  entries.push_back({"idle:", {}});
  for (std::size_t cause = 0; cause < plan::idle_cause_count; ++cause)
    if (has_cause_[cause])
      entries.push_back(
          {QString::fromStdString(plan::idle_causes()[cause]), theme.causes[cause], 11});
  return entries;
}

PlacedLegend placed(const std::vector<LegendEntry>& entries, const QFontMetricsF& metrics,
                    double left, double right) {
  double all = left - between;
  for (const LegendEntry& entry : entries)
    all += between + width_of(entry, metrics);
  const bool in_one = all <= right;

  PlacedLegend legend;
  double x = left;
  int row = 0;
  for (const LegendEntry& entry : entries) {
    const double width = width_of(entry, metrics);
    const bool begins = entry.height == 0 && !in_one;
    if (x > left && (begins || x + width > right)) {
      x = left;
      ++row;
    }
    legend.places.emplace_back(x, row);
    x += width + between;
  }
  legend.rows = row + 1;
  return legend;
}

}  // namespace pipewright::gui
