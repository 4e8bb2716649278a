// Checks a dozen views of the timeline, light and dark; CMake runs them at scale 1 and 2.
#include <QApplication>
#include <algorithm>

#include "gui/support/pictures.hpp"
#include "gui/support/tables.hpp"
#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/gui/timeline/timeline_view.hpp"
#include "support/catch.hpp"

namespace timeline_pictures_test {

using namespace pipewright;
using gui::TimelineView;
using gui::Workspace;
using test::check_picture;
using test::picture_of;

/// A timeline that is laid out as it will be painted.
struct Sight {
  TimelineView view;

  explicit Sight(std::shared_ptr<gui::PaintedTable> front,
                 std::shared_ptr<gui::PaintedTable> ghost = {}) {
    view.show_tables(std::move(front), std::move(ghost));
    view.resize(640, 360);
    view.show();
    QApplication::processEvents();
    view.fit_all();
  }
  void check(const std::string& name) { check_picture(name, picture_of(view)); }
};

std::shared_ptr<gui::PaintedTable> painted(const plan::Timeline& timeline) {
  return std::make_shared<gui::PaintedTable>(plan::table_of(timeline));
}

struct Run {
  Workspace workspace;
  Run() { workspace.open(PIPEWRIGHT_TEST_DATA_DIR "/gui/run"); }
};

/// Returns the same step many times: its actions are far less than a pixel wide.
plan::Timeline many_steps(int steps) {
  const plan::Timeline step = test::small_pipeline(1.5);
  const plan::Seconds every = step.length + plan::Seconds{1e-5};
  plan::Timeline many{
      .name = "many", .ranks = step.ranks, .length = every * steps, .spans = {}, .memory = {}};
  for (int i = 0; i < steps; ++i) {
    const plan::Seconds by = every * i;
    for (plan::Span span : step.spans) {
      span.start += by;
      span.end += by;
      many.spans.push_back(span);
    }
    for (plan::IdleSpan idle : step.idle) {
      idle.start += by;
      idle.end += by;
      many.idle.push_back(idle);
    }
  }
  std::stable_sort(many.idle.begin(), many.idle.end(),
                   [](const auto& a, const auto& b) { return a.rank < b.rank; });
  return many;
}

/// Returns one action of each kind.
plan::Timeline all_kinds() {
  plan::Timeline kinds{
      .name = "kinds", .ranks = 1, .length = plan::Seconds{9}, .spans = {}, .memory = {}};
  double at = 0;
  for (const char* name : {"0LOAD0", "0F0", "0R0", "0B0", "0I0", "0W0", "0STEP", "softmax"}) {
    kinds.spans.push_back({0, plan::Row::Compute, name, plan::Seconds{at}, plan::Seconds{at + 1}});
    at += 1.1;
  }
  return kinds;
}

TEST_CASE("A run is shown before its prediction", "[gui][pictures]") {
  Run run;
  Sight sight(run.workspace.front(), run.workspace.ghost());
  sight.check("run");
  sight.view.set_theme(gui::dark_theme());
  sight.check("run-dark");
}

TEST_CASE("Actions that differ from their prediction are hot or cold", "[gui][pictures]") {
  Run run;
  run.workspace.set_heat(true);
  Sight sight(run.workspace.front(), run.workspace.ghost());
  sight.view.set(&gui::TimelineModel::heat, true);
  sight.check("heat");
}

TEST_CASE("Two plans are shown above each other", "[gui][pictures]") {
  Sight sight(painted(test::small_pipeline(1.5)), painted(test::small_pipeline()));
  sight.check("two-plans");
  sight.view.set(&gui::TimelineModel::overlaid, true);
  sight.check("two-plans-over");
}

TEST_CASE("Actions of less than a pixel are mixed, and bubbles stay light", "[gui][pictures]") {
  Sight sight(painted(many_steps(300)));
  sight.check("zoomed-out");
}

TEST_CASE("Single actions have names, hatches and edges", "[gui][pictures]") {
  Sight sight(painted(test::small_pipeline(1.5)));
  sight.view.show_time(8e-3, 14e-3);
  sight.check("zoomed-in");
}

TEST_CASE("Every kind of action looks different", "[gui][pictures]") {
  Sight sight(painted(all_kinds()));
  sight.check("kinds");
  sight.view.set_theme(gui::dark_theme());
  sight.check("kinds-dark");
}

TEST_CASE("A selected bubble has a chain of the events that caused it", "[gui][pictures]") {
  Run run;
  const plan::EventTable& table = run.workspace.front()->table();
  // The longest.
  const auto longest = std::max_element(
      table.idle.begin(), table.idle.end(),
      [](const auto& a, const auto& b) { return a.end - a.start < b.end - b.start; });
  const double middle = (longest->start + longest->end) / 2;
  Sight sight(run.workspace.front(), run.workspace.ghost());
  sight.view.pick(gui::PickedIdle{longest->rank, middle, longest->start, longest->end});
  const auto why = run.workspace.why_idle(longest->rank, middle);
  REQUIRE(why);
  std::vector<std::uint64_t> chain;
  for (const int event : why->chain)
    if (const std::int64_t at = run.workspace.table_event(event); at >= 0)
      chain.push_back(static_cast<std::uint64_t>(at));
  std::vector<gui::Arrow> arrows;
  for (std::size_t i = 1; i < chain.size(); ++i)
    arrows.push_back({chain[i], chain[i - 1]});
  sight.view.set_highlight(chain);
  sight.view.set_arrows(arrows);
  sight.view.show_time(longest->start - 0.1, longest->end + 0.1);
  sight.check("bubble");
}

TEST_CASE("A selected action has a frame", "[gui][pictures]") {
  Sight sight(painted(test::small_pipeline()));
  sight.view.pick(gui::PickedEvent{false, 3});
  sight.check("action");
}

TEST_CASE("A selected area shows its length", "[gui][pictures]") {
  Sight sight(painted(test::small_pipeline()));
  sight.view.pick(gui::PickedArea{5e-3, 12e-3, {1, 2}});
  sight.check("area");
}

TEST_CASE("Rows are pinned, collapsed and moved", "[gui][pictures]") {
  Sight sight(painted(test::small_pipeline()));
  sight.view.set_rows({.order = {3, 1}, .pinned = {2}, .collapsed = {0, 1}, .filter = {}});
  sight.check("rows");
}

TEST_CASE("Many ranks are painted the same by several threads as by one", "[gui][pictures]") {
  plan::Timeline many{.name = "many",
                      .ranks = 16,
                      .length = test::small_pipeline(1.5).length,
                      .spans = {},
                      .memory = {}};
  for (int copy = 0; copy < 4; ++copy) {
    for (plan::Span span : test::small_pipeline(1.5).spans) {
      span.rank += 4 * copy;
      many.spans.push_back(span);
    }
  }
  Sight sight(painted(many), painted(many));
  sight.check("many-ranks");
  const QImage first = picture_of(sight.view);
  for (int again = 0; again < 10; ++again) {
    sight.view.set_theme(gui::light_theme());  // everything is painted again
    CHECK(picture_of(sight.view) == first);
  }
}

TEST_CASE("The map dims the half of the timeline that is out of view", "[gui][pictures]") {
  Sight sight(painted(many_steps(20)));
  sight.view.set_scale(
      gui::fitted(0, sight.view.front()->length() / 2, sight.view.model().layout.plot_width()));
  sight.check("half");
}

TEST_CASE("Time beyond the iteration is not a bubble", "[gui][pictures]") {
  Sight sight(painted(test::small_pipeline()));
  sight.view.set_scale(gui::fitted(-5e-3, 45e-3, sight.view.model().layout.plot_width()));
  sight.check("beyond");
}

}  // namespace timeline_pictures_test
