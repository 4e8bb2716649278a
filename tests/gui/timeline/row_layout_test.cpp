#include "pipewright/gui/timeline/row_layout.hpp"

#include "gui/support/tables.hpp"
#include "support/catch.hpp"

namespace row_layout_test {

using namespace pipewright;
using gui::RowLayout;
using gui::RowState;

std::vector<int> ranks_of(const RowLayout& layout) {
  std::vector<int> ranks;
  for (const gui::PlacedRow& row : layout.rows)
    ranks.push_back(row.rank);
  return ranks;
}

TEST_CASE("Rows are below each other and share the height", "[gui][timeline]") {
  const plan::EventTable table = plan::table_of(test::small_pipeline());
  const RowLayout layout = gui::lay_out_rows(table, {}, 200, false);
  CHECK(ranks_of(layout) == std::vector{0, 1, 2, 3});
  CHECK(layout.height == Approx(200));
  double end = 0;
  for (const gui::PlacedRow& row : layout.rows) {
    CHECK(row.top == Approx(end));
    end += row.height;
  }
  CHECK(gui::lay_out_rows(table, {}, 10, false).height > 10);      // then it is scrolled
  CHECK(gui::lay_out_rows(table, {}, 5000, false).height < 5000);  // a row need not be that tall
}

TEST_CASE("A pinned rank comes first, with its own height", "[gui][timeline]") {
  const plan::EventTable table = plan::table_of(test::small_pipeline());
  const RowLayout layout = gui::lay_out_rows(
      table, {.order = {}, .pinned = {2}, .collapsed = {}, .filter = {}}, 200, false);
  CHECK(ranks_of(layout) == std::vector{2, 0, 1, 3});
  CHECK(layout.rows[0].pinned);
  CHECK(layout.pinned_height == Approx(layout.rows[0].height));
  CHECK(layout.rows[1].top == 0);
}

TEST_CASE("Collapsed rows leave their height to the others", "[gui][timeline]") {
  const plan::EventTable table = plan::table_of(test::small_pipeline());
  const RowLayout all = gui::lay_out_rows(table, {}, 120, false);
  const RowLayout some = gui::lay_out_rows(
      table, {.order = {}, .pinned = {}, .collapsed = {0, 1}, .filter = {}}, 120, false);
  CHECK(some.rows[0].height < all.rows[0].height);
  CHECK(some.rows[3].height > all.rows[3].height);
  CHECK(some.height == Approx(120));
}

TEST_CASE("Only ranks whose name contains the text are shown", "[gui][timeline]") {
  plan::EventTable table = plan::table_of(test::small_pipeline());
  CHECK(ranks_of(gui::lay_out_rows(
            table, {.order = {}, .pinned = {}, .collapsed = {}, .filter = "3"}, 160, false)) ==
        std::vector{3});
  table.rank_names = {"worker a", "worker b", "host", "host 2"};
  CHECK(ranks_of(gui::lay_out_rows(
            table, {.order = {}, .pinned = {}, .collapsed = {}, .filter = "worker"}, 160, false)) ==
        std::vector{0, 1});
}

TEST_CASE("A heading is above the rows of each group, and rows are found by position",
          "[gui][timeline]") {
  const plan::EventTable table = plan::table_of(test::small_pipeline());
  RowState state{.order = {3, 1, 2, 0}, .pinned = {1}, .collapsed = {}, .filter = {}};
  state.groups = {.of = {0, 0, 1, 1}, .names = {"left", "right"}};
  const RowLayout layout = gui::lay_out_rows(table, state, 300, false);
  CHECK(ranks_of(layout) == std::vector{1, 3, 2, 0});  // the pinned one has no heading
  REQUIRE(layout.headings.size() == 2);
  CHECK(layout.headings[0].group == 1);
  CHECK(layout.headings[0].top == 0);
  CHECK(layout.row_of(3)->top == layout.headings[0].height);
  CHECK(layout.headings[1].group == 0);
  CHECK(layout.headings[1].top == layout.row_of(2)->top + layout.row_of(2)->height);
  CHECK(layout.height + layout.pinned_height == Approx(300));

  const auto ranks_between = [&](double top, double bottom) {
    std::vector<int> ranks;
    for (const gui::PlacedRow& row : layout.rows_between(top, bottom))
      ranks.push_back(row.rank);
    return ranks;
  };
  CHECK(ranks_between(0, layout.height) == std::vector{3, 2, 0});
  CHECK(ranks_between(0, layout.row_of(3)->top).empty());  // the heading is there
  const double middle = layout.row_of(2)->top + 1;
  CHECK(ranks_between(middle, middle + 1) == std::vector{2});
  CHECK(ranks_between(layout.height, layout.height + 10).empty());

  // A group whose rows are all filtered out has no heading.
  state.filter = "rank 0";
  CHECK(gui::lay_out_rows(table, state, 300, false).headings.size() == 1);
}

TEST_CASE("A rank is moved before another, and the order keeps all of them", "[gui][timeline]") {
  CHECK(gui::moved_before({0, 1, 2, 3}, 3, 1) == std::vector{0, 3, 1, 2});
  CHECK(gui::moved_before({0, 1, 2, 3}, 0, -1) == std::vector{1, 2, 3, 0});
  CHECK(gui::moved_before({0, 1, 2, 3}, 2, 2) == std::vector{0, 1, 2, 3});
  // A saved state may come from another file.
  CHECK(gui::ordered_ranks({.order = {5, 2, 2, -1}, .pinned = {}, .collapsed = {}, .filter = {}},
                           4) == std::vector{2, 0, 1, 3});
}

TEST_CASE("Compute is high, with low bands for transfers below it, all within the row",
          "[gui][timeline]") {
  const gui::PaintedTable painted(plan::table_of(test::small_pipeline()));
  for (const double height : {9.0, 20.0, 40.0, 80.0}) {
    const auto bands = gui::bands_of(painted, 1, 5, height);
    REQUIRE(!bands.empty());
    for (const gui::TrackBand& band : bands) {
      CAPTURE(height, band.track);
      CHECK(band.top >= 5);
      CHECK(band.top + band.height <= 5 + height + 1e-9);
      CHECK(band.height <= bands.front().height);
    }
    CHECK(painted.table().tracks[bands.front().track].row == plan::Row::Compute);
    CHECK(bands.size() == (height >= 40 ? 2 : 1));
  }
}

}  // namespace row_layout_test
