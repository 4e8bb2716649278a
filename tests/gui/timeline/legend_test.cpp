#include "pipewright/gui/timeline/legend.hpp"

#include "pipewright/gui/look/theme.hpp"
#include "support/catch.hpp"

namespace legend_test {

using namespace pipewright::gui;

const std::vector<LegendEntry> entries{{"forward", Qt::blue, 11},
                                       {"backward", Qt::green, 11},
                                       {"idle:", {}},
                                       {"warm-up", Qt::red, 11}};

std::vector<int> rows_of(const PlacedLegend& legend) {
  std::vector<int> rows;
  for (const QPointF& place : legend.places)
    rows.push_back(static_cast<int>(place.y()));
  return rows;
}

TEST_CASE("A legend that fits is one row", "[gui]") {
  const QFontMetricsF metrics(font_of(small_size));
  const PlacedLegend legend = placed(entries, metrics, 100, 2000);
  CHECK(legend.rows == 1);
  CHECK(rows_of(legend) == std::vector<int>{0, 0, 0, 0});
  CHECK(legend.places[0].x() == 100);
  CHECK(legend.places[1].x() >= 100 + legend_box + metrics.horizontalAdvance("forward"));
}

TEST_CASE("A legend that does not fit breaks before a heading, then where necessary", "[gui]") {
  const QFontMetricsF metrics(font_of(small_size));
  const PlacedLegend whole = placed(entries, metrics, 0, 2000);
  const double all = whole.places[3].x() + legend_box + metrics.horizontalAdvance("warm-up");
  CHECK(placed(entries, metrics, 0, all).rows == 1);
  CHECK(rows_of(placed(entries, metrics, 0, all - 1)) == std::vector<int>{0, 0, 1, 1});
  // Narrower than any entry: one in each row, and none lost.
  const PlacedLegend narrow = placed(entries, metrics, 0, 1);
  CHECK(rows_of(narrow) == std::vector<int>{0, 1, 2, 3});
  CHECK(narrow.rows == 4);
  CHECK(placed({}, metrics, 0, 100).rows == 1);
}

}  // namespace legend_test
