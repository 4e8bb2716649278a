#include "pipewright/gui/document/workspace.hpp"

#include <QTest>
#include <algorithm>

#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace workspace_test {

using namespace pipewright;
using gui::Workspace;
using Change = Workspace::Change;

const std::string run_folder = PIPEWRIGHT_TEST_DATA_DIR "/gui/run";
const std::string scenario = PIPEWRIGHT_SOURCE_DIR "/scenarios/shared-card/scenario.json";

TEST_CASE("A run is shown with its prediction behind it, and each action is matched",
          "[gui][document]") {
  Workspace workspace;
  workspace.open(run_folder);
  CHECK(workspace.document().problems.empty());
  CHECK(workspace.shown() == Workspace::Shown::Run);
  REQUIRE(workspace.front());
  REQUIRE(workspace.ghost());
  CHECK(workspace.front()->table().name == "measured");
  CHECK(workspace.ghost()->table().name == "predicted");
  REQUIRE(workspace.structure());
  REQUIRE(workspace.times());
  CHECK(workspace.residuals());

  int matched = 0;
  const plan::EventTable& table = workspace.front()->table();
  for (int event = 0; event < workspace.structure()->size(); ++event) {
    const std::int64_t at = workspace.table_event(event);
    if (at < 0)
      continue;
    ++matched;
    CHECK(table.name_at(static_cast<std::uint64_t>(at)) ==
          plan::to_string(*workspace.structure()->events()[event].instruction));
    CHECK(workspace.structure_event(static_cast<std::uint64_t>(at)) == event);
  }
  CHECK(matched == static_cast<int>(table.size()));
  CHECK(workspace.table_event(-1) == -1);
  CHECK(workspace.structure_event(1U << 30U) == -1);
}

TEST_CASE("A bubble of a run is explained by concurrent events", "[gui][document]") {
  Workspace workspace;
  workspace.open(run_folder);
  const plan::EventTable& table = workspace.front()->table();
  REQUIRE(!table.idle.empty());
  int explained = 0;
  for (const plan::EventTable::Idle& idle : table.idle) {
    const double middle = (idle.start + idle.end) / 2;
    const auto why = workspace.why_idle(idle.rank, middle);
    REQUIRE(why);
    CAPTURE(why->sentence, idle.rank, idle.start, idle.end);
    CHECK(why->sentence.find("rank " + std::to_string(idle.rank)) != std::string::npos);
    REQUIRE(why->cause);
    CHECK(static_cast<std::uint32_t>(*why->cause) == idle.cause);
    // The displayed part of the chain consists of events of the table.
    for (const int event : why->chain)
      if (const std::int64_t at = workspace.table_event(event); at >= 0)
        CHECK(static_cast<std::uint64_t>(at) < table.size());
    explained += why->chain.empty() ? 0 : 1;
  }
  CHECK(explained > 0);
  CHECK(!workspace.why_idle(0, 1e9));
  CHECK(!workspace.why_idle(99, 0));
}

TEST_CASE("A plan's events have their kinds", "[gui][document]") {
  Workspace workspace;
  workspace.open(scenario);
  const plan::EventTable& table = workspace.front()->table();
  REQUIRE(table.kinds.size() == table.names.size());
  REQUIRE(table.names.size() > 10);
  for (std::size_t name = 0; name < table.names.size(); ++name)
    CHECK(plan::parse_instruction(table.names[name])->kind == table.kinds[name]);
}

TEST_CASE("A change is answered, undone and redone", "[gui][document]") {
  Workspace workspace;
  workspace.open(scenario);
  REQUIRE(workspace.has_plan());
  REQUIRE(workspace.answer());
  CHECK(workspace.shown() == Workspace::Shown::Plan);
  CHECK(!workspace.changed());
  CHECK(!workspace.ghost());
  const double before = workspace.answer()->figures.iteration_s;

  workspace.set("pipeline.microbatches=4");
  REQUIRE(workspace.answer());
  const double after = workspace.answer()->figures.iteration_s;
  CHECK(after != before);
  CHECK(workspace.changed());
  REQUIRE(workspace.ghost());  // the plan as it was opened
  CHECK(workspace.ghost()->length() == Approx(before));
  CHECK(workspace.baseline()->figures.iteration_s == before);

  workspace.undo();
  CHECK(workspace.answer()->figures.iteration_s == before);
  CHECK(!workspace.changed());
  CHECK(!workspace.ghost());
  workspace.redo();
  CHECK(workspace.answer()->figures.iteration_s == after);
  workspace.redo();  // there is nothing left to redo
  workspace.undo();
  workspace.undo();
  CHECK(workspace.answer()->figures.iteration_s == before);
}

TEST_CASE("An impossible plan is rejected with a reason and can be undone", "[gui][document]") {
  Workspace workspace;
  workspace.open(scenario);
  workspace.set("model.blocks=5");  // the costs belong to another model
  CHECK(!workspace.answer());
  CHECK(!workspace.refusal().text.empty());
  CHECK(!workspace.front());
  CHECK(workspace.savings().empty());
  CHECK(!workspace.why_idle(0, 0));
  workspace.undo();
  CHECK(workspace.answer());
  CHECK(workspace.refusal().text.empty());

  const search::Draft draft = workspace.draft();
  CHECK(test::error_of([&] { workspace.set("pipeline.no_such=1"); }) != "no error");
  CHECK(test::error_of([&] { workspace.set("pipeline.ranks=4096"); }) != "no error");
  CHECK(workspace.draft() == draft);
  CHECK(!workspace.history().can_undo());
}

TEST_CASE("Dragging a slider is one step to undo", "[gui][document]") {
  Workspace workspace;
  workspace.open(scenario);
  for (const int microbatches : {5, 6, 7})
    workspace.set("pipeline.microbatches=" + std::to_string(microbatches));
  workspace.settle();
  workspace.undo();
  CHECK(!workspace.changed());
}

TEST_CASE("Moving a stage boundary moves a layer to the other stage", "[gui][document]") {
  Workspace workspace;
  workspace.open(scenario);
  const std::vector<int> before = workspace.answer()->plan.partition.boundaries;
  workspace.move_boundary(1, before[1] - 1);
  REQUIRE(workspace.answer());
  CHECK(workspace.answer()->plan.partition.boundaries[1] == before[1] - 1);
  CHECK(workspace.changed());
  CHECK(test::error_of([&] { workspace.move_boundary(1, 0); }) != "no error");
  workspace.undo();
  CHECK(workspace.answer()->plan.partition.boundaries == before);
}

TEST_CASE("Differences refer to the new baseline", "[gui][document]") {
  Workspace workspace;
  workspace.open(scenario);
  workspace.set("pipeline.microbatches=4");
  workspace.keep_as_baseline();
  CHECK(!workspace.changed());
  CHECK(!workspace.ghost());
  CHECK(workspace.baseline()->figures.iteration_s == workspace.answer()->figures.iteration_s);
}

TEST_CASE("The run and its plan are shown alternately, and a selection belongs to one of them",
          "[gui][document]") {
  Workspace workspace;
  workspace.open(run_folder);
  workspace.pick(gui::PickedEvent{false, 3});
  workspace.show(Workspace::Shown::Plan);
  CHECK(std::holds_alternative<std::monostate>(workspace.picked()));
  REQUIRE(workspace.answer());
  CHECK(workspace.front()->length() == Approx(workspace.answer()->figures.iteration_s));
  CHECK(workspace.times() == &workspace.answer()->times);
  workspace.show(Workspace::Shown::Run);
  CHECK(workspace.front()->table().name == "measured");
}

TEST_CASE("Observers are notified of changes, but not of an unchanged selection",
          "[gui][document]") {
  Workspace workspace;
  std::vector<Change> told;
  workspace.observe([&](Change change) { told.push_back(change); });
  workspace.open(run_folder);
  CHECK(told == std::vector{Change::Document, Change::Plan, Change::Tables, Change::Pick});
  told.clear();
  workspace.pick(gui::PickedEvent{false, 1});
  workspace.pick(gui::PickedEvent{false, 1});
  CHECK(told == std::vector{Change::Pick});
  told.clear();
  workspace.set_heat(true);
  CHECK(told == std::vector{Change::Tables});
}

TEST_CASE("Another file is shown behind the timeline", "[gui][document]") {
  Workspace workspace;
  workspace.open(scenario);
  workspace.compare_with(run_folder + "/predicted.trace.json");
  REQUIRE(workspace.ghost());
  CHECK(workspace.ghost()->table().name == "predicted.trace.json");
  const test::TempFolder folder;
  const auto nothing = folder.write("nothing.json", "{}");
  CHECK(test::error_of([&] { workspace.compare_with(nothing); }).find("nothing.json") !=
        std::string::npos);
  CHECK(workspace.ghost());
}

TEST_CASE("Missing files of a run are reported, and the rest is shown", "[gui][document]") {
  const test::TempFolder folder;
  for (const char* name : {"scenario.json", "costs.json", "measured.trace.json", "report.json"})
    std::filesystem::copy(std::filesystem::path(run_folder) / name, folder.path() / name);
  folder.write("program.json", "{\"format\": \"pipewright/program/1\", ");
  Workspace workspace;
  workspace.open(folder.path());
  const auto& problems = workspace.document().problems;
  const auto named = [&](const char* file) {
    return std::any_of(problems.begin(), problems.end(), [&](const std::string& line) {
      return line.find(file) != std::string::npos;
    });
  };
  CHECK(named("program.json"));
  CHECK(named("partition.json"));
  CHECK(!named("scenario.json"));
  CHECK(workspace.front());
  CHECK(!workspace.structure());
  CHECK(workspace.answer());
  workspace.open(folder.path() / "is not there");
  CHECK(!workspace.front());
  CHECK(workspace.document().problems.size() == 1);
}

TEST_CASE("A measured run has a critical path that ends with the iteration", "[gui][document]") {
  const gui::Document document = gui::open_document(run_folder);
  REQUIRE(document.measured);
  const plan::EventTable& table = *document.measured;
  REQUIRE(!table.critical.empty());
  double last = 0;
  for (const double end : table.end)
    last = std::max(last, end);
  CHECK(table.end[table.critical.back()] == last);
  for (std::size_t at = 1; at < table.critical.size(); ++at)
    CHECK(table.end[table.critical[at - 1]] <= table.end[table.critical[at]]);
}

TEST_CASE("An undone change is shown, whatever was shown before", "[gui][document]") {
  Workspace workspace;
  workspace.open(run_folder);
  workspace.set("pipeline.microbatches=4");
  workspace.show(Workspace::Shown::Run);
  workspace.undo();
  CHECK(workspace.shown() == Workspace::Shown::Plan);
  workspace.show(Workspace::Shown::Run);
  workspace.redo();
  CHECK(workspace.shown() == Workspace::Shown::Plan);
}

/// Opens a plan that slightly exceeds its devices' memory.
void open_too_large(Workspace& workspace) {
  workspace.open(scenario);
  workspace.set("pipeline.replicas=1");
  const auto peak = workspace.answer()->figures.peak;
  workspace.set("cluster.device.memory_bytes=" + std::to_string(peak.value - 10'000'000));
}

constexpr int patience_ms = 60'000;

TEST_CASE("A plan that fits is found in the background", "[gui][document]") {
  Workspace workspace;
  open_too_large(workspace);
  std::optional<sim::Remedy> remedy;
  workspace.look_for_remedy([&](const std::optional<sim::Remedy>& found) { remedy = found; });
  CHECK_FALSE(remedy);
  REQUIRE(QTest::qWaitFor([&] { return remedy.has_value(); }, patience_ms));
  const auto expected = search::WhatIf().remedy(workspace.draft());
  REQUIRE(expected);
  CHECK(remedy->assignment == expected->assignment);
  workspace.set(remedy->assignment);
  CHECK_FALSE(workspace.answer()->over);
}

TEST_CASE("A remedy for a previous draft is not reported", "[gui][document]") {
  Workspace workspace;
  open_too_large(workspace);
  std::string told;
  const auto look = [&](const char* as) {
    workspace.look_for_remedy([&told, as](const auto&) { told += as; });
  };
  look("before ");
  workspace.set("pipeline.microbatches=4");
  look("once ");
  look("again ");
  REQUIRE(QTest::qWaitFor([&] { return !told.empty(); }, patience_ms));
  QTest::qWait(50);
  CHECK(told == "again ");
  look("never ");
  workspace.open(run_folder);
  QTest::qWait(50);
  CHECK(told == "again ");
}

TEST_CASE("A workspace can be destroyed during a search", "[gui][document]") {
  bool told = false;
  {
    Workspace workspace;
    open_too_large(workspace);
    workspace.look_for_remedy([&](const auto&) { told = true; });
  }
  QTest::qWait(50);
  CHECK_FALSE(told);
}

}  // namespace workspace_test
