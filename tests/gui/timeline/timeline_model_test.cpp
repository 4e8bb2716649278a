// Checks positions, hit tests and the selection without a window.
#include "pipewright/gui/timeline/timeline_model.hpp"

#include "gui/support/tables.hpp"
#include "support/catch.hpp"

namespace timeline_model_test {

using namespace pipewright;
using gui::TimelineLayout;
using gui::TimelineModel;

TimelineModel shown(bool with_ghost = false) {
  const auto table = [] {
    return std::make_shared<gui::PaintedTable>(plan::table_of(test::small_pipeline()));
  };
  TimelineModel model;
  model.show({table(), with_ghost ? table() : nullptr});
  model.lay_out({900, 400});
  model.layout.scale = model.whole();
  return model;
}

TEST_CASE(
    "The plot has the width next to the headers, and the rows have the height between ruler and "
    "legend",
    "[gui][timeline]") {
  const TimelineModel model = shown();
  const TimelineLayout& at = model.layout;
  CHECK(at.x(0) == at.plot_left);
  CHECK(at.x(model.tables.front->length()) == Approx(900 - gui::gap));
  CHECK(at.time(at.x(5e-3)) == Approx(5e-3));
  CHECK(at.row_rect(0).top() == TimelineLayout::rows_top);
  CHECK(at.row_rect(3).bottom() == Approx(at.rows_bottom()));
  CHECK(at.row_rect(4).isNull());
  CHECK(at.row_at(TimelineLayout::rows_top - 1) == nullptr);
  CHECK(at.row_at(at.rows_bottom()) == nullptr);
  CHECK(at.ranks_between(at.row_rect(1).center().y(), at.row_rect(2).center().y()) ==
        std::vector{1, 2});
}

TEST_CASE("Rows scroll beneath the pinned ones", "[gui][timeline]") {
  TimelineModel model = shown();
  model.rows.pinned = {2};
  model.lay_out({900, 140});
  const double before = model.layout.row_rect(1).top();
  model.layout.scroll = 10;
  CHECK(model.layout.row_rect(2).top() == TimelineLayout::rows_top);
  CHECK(model.layout.row_rect(1).top() == before - 10);
  // Row 0 begins beneath row 2, which is pinned and covers it.
  CHECK(model.layout.row_rect(0).top() < model.layout.scrolled_top());
  CHECK(model.layout.row_at(model.layout.scrolled_top() - 1)->rank == 2);
}

TEST_CASE("The ghost is above each expanded row, unless both are overlaid", "[gui][timeline]") {
  TimelineModel model = shown(true);
  const auto ghost_height = [&] {
    return model.layout.parts_of(*model.layout.rows.row_of(0)).ghost_height;
  };
  CHECK(ghost_height() > 0);
  const QRectF row = model.layout.row_rect(0);
  const double x = model.layout.x(0.5e-3);
  CHECK(std::get<gui::PickedEvent>(model.pick_at({x, row.top() + 6})).ghost);
  CHECK_FALSE(std::get<gui::PickedEvent>(model.pick_at({x, row.center().y()})).ghost);
  model.overlaid = true;
  model.lay_out({900, 400});
  CHECK(ghost_height() == 0);
}

TEST_CASE("An event is found where it is painted, a gap next to it, and nothing on its header",
          "[gui][timeline]") {
  const TimelineModel model = shown();
  const plan::EventTable& table = model.tables.front->table();
  for (const plan::EventTrack& track : table.tracks)
    if (track.row == plan::Row::Compute)
      for (std::uint64_t event = track.begin; event < track.end; ++event)
        CHECK(model.pick_at(model.event_rect(event).center()) ==
              gui::Picked(gui::PickedEvent{false, event}));
  const QRectF last = model.layout.row_rect(3);
  const gui::Picked gap = model.pick_at({model.layout.x(0.5e-3), last.center().y()});
  REQUIRE(std::holds_alternative<gui::PickedIdle>(gap));
  CHECK(model.tables.span_of(gap)->rank == 3);
  CHECK(model.tables.describe(gap).startsWith("rank 3 idle for "));
  CHECK(model.rect_of(gap).left() == Approx(model.layout.plot_left));
  CHECK(model.pick_at({20, last.center().y()}) == gui::Picked());
}

TEST_CASE("An instant snaps to the edge of an event within six pixels", "[gui][timeline]") {
  const TimelineModel model = shown();
  const QRectF first = model.event_rect(0);
  const double end = model.tables.front->table().end[0];
  CHECK(model.snapped({first.right() + 1, first.center().y()}) == end);
  const QPointF inside(first.center().x(), first.center().y());
  REQUIRE(first.width() > 14);
  CHECK(model.snapped(inside) == model.layout.time(inside.x()));
}

TEST_CASE("A step leads to the next event of the track, up to its end", "[gui][timeline]") {
  TimelineModel model = shown();
  CHECK(model.step(1) == gui::PickedEvent{false, 0});
  model.marks.pick(gui::PickedEvent{false, 0});
  CHECK(model.step(1) == gui::PickedEvent{false, 1});
  CHECK(model.step(-1) == gui::PickedEvent{false, 0});
  const std::uint64_t end = model.tables.front->table().tracks[0].end;
  CHECK(model.step(1000) == gui::PickedEvent{false, end - 1});
  CHECK_FALSE(TimelineModel().step(1));
}

TEST_CASE("A new selection drops the explanation of the last one", "[gui][timeline]") {
  gui::TimelineMarks marks{.picked = gui::PickedEvent{false, 1},
                           .hovered = gui::PickedEvent{false, 2},
                           .row = 3,
                           .arrows = {{1, 2}},
                           .highlight = {4}};
  marks.pick(gui::PickedEvent{false, 5});
  CHECK(marks.picked == gui::Picked(gui::PickedEvent{false, 5}));
  CHECK(marks.hovered == gui::Picked(gui::PickedEvent{false, 2}));
  CHECK(marks.row == -1);
  CHECK(marks.arrows.empty());
  CHECK(marks.highlight.empty());
}

TEST_CASE("A revealed item is in the middle and wide enough to be seen", "[gui][timeline]") {
  TimelineModel model = shown();
  const double width = model.layout.plot_width();
  CHECK(model.revealing({5e-3, 15e-3, 0}) == model.layout.scale);  // already visible
  const gui::TimeScale scale = model.revealing({5e-3, 5e-3 + 1e-6, 0});
  CHECK(scale.per_pixel == Approx(1e-6 / 24));
  CHECK(scale.time(width / 2) == Approx(5e-3 + 0.5e-6));
}

}  // namespace timeline_model_test
