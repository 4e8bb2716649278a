#include "pipewright/gui/timeline/timeline_layout.hpp"

#include <cmath>

namespace pipewright::gui {
namespace {

constexpr double ghost_part = 0.3;  // of a row

}  // namespace

double TimelineLayout::row_y(const PlacedRow& row) const {
  return rows_top + row.top + (row.pinned ? 0.0 : rows.pinned_height - scroll);
}

QRectF TimelineLayout::row_rect(int rank) const {
  const PlacedRow* const row = rows.row_of(rank);
  return row == nullptr ? QRectF() : QRectF(0, row_y(*row), viewport.width(), row->height);
}

RowParts TimelineLayout::parts_of(const PlacedRow& row) const {
  const double pad = row.height >= 40 ? 4 : 1;
  const double room = row.height - 2 * pad;
  RowParts parts{pad, 0, pad, room};
  if (ghost_above && !row.collapsed) {
    parts.ghost_height = std::floor(room * ghost_part) - 1;
    parts.front_top += parts.ghost_height + 1;
    parts.front_height -= parts.ghost_height + 1;
  }
  return parts;
}

std::span<const PlacedRow> TimelineLayout::scrolled_rows() const {
  return rows.rows_between(scroll, scroll + std::max(0.0, rows_bottom() - scrolled_top()));
}

std::vector<const PlacedHeading*> TimelineLayout::headings_in_sight() const {
  const double bottom = scroll + rows_bottom() - scrolled_top();
  std::vector<const PlacedHeading*> seen;
  for (const PlacedHeading& heading : rows.headings)
    if (heading.top + heading.height > scroll && heading.top < bottom)
      seen.push_back(&heading);
  return seen;
}

const PlacedRow* TimelineLayout::row_at(double y) const {
  if (y >= rows_bottom())
    return nullptr;
  for (const auto some : {pinned_rows(), scrolled_rows()})
    for (const PlacedRow& row : some)
      if (const double top = row_y(row);
          y >= top && y < top + row.height && (row.pinned || y >= scrolled_top()))
        return &row;
  return nullptr;
}

std::vector<int> TimelineLayout::ranks_between(double top, double bottom) const {
  std::vector<int> ranks;
  for (const PlacedRow& row : rows.rows)
    if (row_y(row) < bottom && row_y(row) + row.height > top)
      ranks.push_back(row.rank);
  return ranks;
}

}  // namespace pipewright::gui
