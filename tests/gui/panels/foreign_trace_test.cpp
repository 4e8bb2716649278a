// Checks that the window shows what a foreign trace contains, and nothing else.
#include <QTest>

#include "pipewright/gui/panels/headline.hpp"
#include "pipewright/gui/panels/why_panel.hpp"
#include "support/catch.hpp"

namespace foreign_trace_test {

using namespace pipewright;
using gui::Headline;
using gui::Workspace;

void open(Workspace& workspace, const char* name) {
  workspace.open(std::string(PIPEWRIGHT_TEST_DATA_DIR "/traces/") + name);
  CHECK(workspace.document().problems.empty());
  REQUIRE(workspace.front());
}

std::vector<std::string> figures_of(const Workspace& workspace) {
  std::vector<std::string> figures;
  for (const Headline::Figure& figure : gui::headline_of(workspace).figures)
    figures.push_back(QStringList{figure.caption, figure.value, figure.beside, figure.note}
                          .join(" ")
                          .simplified()
                          .toStdString());
  return figures;
}

TEST_CASE("The iteration of a trace is its median step, and it has no bubble", "[gui][trace]") {
  Workspace workspace;
  open(workspace, "workers.json");
  CHECK(figures_of(workspace) ==
        std::vector<std::string>{"Iteration 1.200 ms median of 3 steps 1.000 ms to 1.400 ms",
                                 "Recorded 4.400 ms"});
  CHECK(gui::headline_of(workspace).subtitle == "10 rows  ·  42 events");
}

TEST_CASE("A trace without marks has no iteration", "[gui][trace]") {
  Workspace workspace;
  open(workspace, "no-marks.json");
  CHECK(figures_of(workspace) == std::vector<std::string>{"Recorded 100.0 µs"});
  CHECK(gui::step_sentence(*workspace.front()) ==
        "This trace marks no steps. It does not say what a thread waits for.");
}

TEST_CASE("A row is busy while any of its events lasts", "[gui][trace]") {
  Workspace workspace;
  open(workspace, "no-marks.json");
  const gui::PaintedTable& front = *workspace.front();
  REQUIRE(front.table().ranks == 2);
  // frame 0-60, raster 40-80, draw 50-60; read 20-50, late 90-100.
  CHECK(front.busy(0, 0, front.length()) == Approx(80e-6));
  CHECK(front.busy(0, 50e-6, 90e-6) == Approx(30e-6));
  CHECK(front.busy(1, 0, front.length()) == Approx(40e-6));

  // A step mark does not make a thread busy.
  open(workspace, "torch-steps.json");
  int rows = 0;
  for (int rank = 0; rank < workspace.front()->table().ranks; ++rank)
    if (rank_name(workspace.front()->table(), rank).find("stream 7") != std::string::npos) {
      CHECK(workspace.front()->busy(rank, 0, workspace.front()->length()) == Approx(150e-6));
      ++rows;
    }
  CHECK(rows == 1);
}

TEST_CASE("The cause of a gap in a trace's thread is not guessed", "[gui][trace]") {
  Workspace workspace;
  open(workspace, "workers.json");
  gui::WhyPanel panel(workspace);
  panel.show();
  CHECK(panel.spoken().toStdString().find(
            "This trace marks 3 steps; the median one takes 1.200 ms") != std::string::npos);
  workspace.pick(gui::PickedIdle{1, 0.25e-3, 0.2e-3, 0.7e-3});
  CHECK(panel.spoken().toStdString().find(
            "DP rank [0], PP rank 0, TP rank 0, compute has no event for 500.0 µs") !=
        std::string::npos);
  CHECK(!panel.spoken().contains("idle"));
  const gui::FigureTable area =
      gui::area_table(*workspace.front(), gui::PickedArea{0, 1e-3, {1, 3}});
  REQUIRE(area.columns.size() == 3);
  REQUIRE(area.rows.size() == 2);
  CHECK(area.rows[0].cells[1].text == "500.0 µs");
  CHECK(area.rows[0].cells[2].text == "50.0 %");
  CHECK(area.rows[1].cells[1].text == "400.0 µs");
}

}  // namespace foreign_trace_test
