// Checks the trace of a whole job in the window: its workers, the slow ones, and the cost of
// thousands of rows.

#include <QMimeData>
#include <QProcess>
#include <QScrollBar>
#include <nlohmann/json.hpp>

#include "gui/support/mouse.hpp"
#include "gui/support/opened_window.hpp"
#include "pipewright/gui/panels/headline.hpp"
#include "pipewright/gui/panels/stragglers_panel.hpp"
#include "support/reference.hpp"
#include "support/temp_folder.hpp"
#include "trace/support/made_up_job.hpp"

namespace job_test {

using namespace pipewright;
using gui::FigureTableView;
using gui::JobGroups;
using gui::JobOrder;
using test::OpenedWindow;
using test::TempFolder;

/// A job that was opened and explained.
struct OpenedJob : OpenedWindow {
  explicit OpenedJob(const std::filesystem::path& path) : OpenedWindow(path) {
    REQUIRE(workspace().job());
    REQUIRE(QTest::qWaitFor([this] { return !workspace().is_explaining(); }, test::patience_ms));
    QApplication::processEvents();
    REQUIRE(workspace().stragglers());
  }
  std::string name_of_row(int rank) { return plan::rank_name(timeline().front()->table(), rank); }
  /// Returns the names of the rows and headings from top to bottom.
  std::vector<std::string> rows() {
    const gui::RowLayout& layout = timeline().model().layout.rows;
    std::vector<std::pair<double, std::string>> placed;
    for (const gui::PlacedRow& row : layout.rows)
      placed.emplace_back(row.pinned ? row.top - 1e6 : row.top, name_of_row(row.rank));
    for (const gui::PlacedHeading& heading : layout.headings)
      placed.emplace_back(heading.top, timeline().model().rows.groups.names.at(
                                           static_cast<std::size_t>(heading.group)));
    std::sort(placed.begin(), placed.end());
    std::vector<std::string> names;
    for (auto& [top, name] : placed)
      names.push_back(std::move(name));
    return names;
  }
};

/// Writes a job of four workers, of which dp 1 on stage 0 is slow.
std::filesystem::path small_job(const TempFolder& folder) {
  auto job = test::noisy_job(2, 2, 4, {23, 25, 33}, 1);
  job.every_s = 0.4;
  return folder.write("job.json", job.trace());
}

TEST_CASE("A whole job opens with its slow worker on top, by replica and by stage", "[gui][job]") {
  const TempFolder folder;
  OpenedJob opened(small_job(folder));
  CHECK(opened.workspace().document().problems.empty());
  const trace::StragglerReport& report = *opened.workspace().stragglers();
  const auto& metrics = report.metrics;
  CHECK(opened.rows() == [&] {
    std::vector<std::string> names{"all workers"};
    for (const int worker : report.workers)
      names.push_back(worker_name(report.steps.plan.layout, worker));
    return names;
  }());
  CHECK(opened.rows().at(1) == "dp 1, stage 0 (rank 1)");

  // A step mark is not a kind of action.
  int kinds = 0;
  for (std::size_t kind = 0; kind < gui::class_count; ++kind)
    kinds += opened.timeline().front()->has_kind(kind) ? 1 : 0;
  CHECK(kinds == 3);  // forward, backward, optimizer step

  opened.workspace().arrange({JobGroups::Stages, JobOrder::SlowestFirst});
  const auto of_stage = [&](std::size_t stage) {
    return fmt::format("stage {}: S {:.4f}, 2 workers", stage, metrics.by_stage[stage].all);
  };
  CHECK(opened.rows() ==
        std::vector<std::string>{"all workers", of_stage(0), "dp 1, stage 0 (rank 1)",
                                 "dp 0, stage 0 (rank 0)", of_stage(1), "dp 0, stage 1 (rank 2)",
                                 "dp 1, stage 1 (rank 3)"});
  opened.trigger("rows.by_replica");
  opened.trigger("rows.ranks");
  const auto of_replica = [&](std::size_t replica) {
    return fmt::format("dp {}: S {:.4f}, 2 workers", replica, metrics.by_replica[replica].all);
  };
  CHECK(opened.rows() ==
        std::vector<std::string>{"all workers", of_replica(0), "dp 0, stage 0 (rank 0)",
                                 "dp 0, stage 1 (rank 2)", of_replica(1), "dp 1, stage 0 (rank 1)",
                                 "dp 1, stage 1 (rank 3)"});
  auto& groups = opened.find<QComboBox>("stragglers_groups");
  CHECK(groups.currentText() == "By replica");
  groups.setCurrentIndex(0);
  emit groups.activated(0);
  CHECK(opened.rows().size() == 5);

  // Rows pinned by the user stay pinned until another job is open.
  opened.trigger("rows.by_stage");
  gui::RowState pinned = opened.timeline().model().rows;
  pinned.pinned.insert(0);
  opened.timeline().set_rows(pinned);
  opened.trigger("rows.slowest");
  CHECK(opened.timeline().model().rows.pinned == std::set{0, 4});
  opened.window.open(folder.write("other.json", test::noisy_job(3, 2, 2, {1}, 1).trace()));
  CHECK(opened.timeline().model().rows.pinned == std::set{6});

  // The next document has no workers.
  opened.window.open(test::opened_run);
  CHECK(opened.timeline().model().rows == gui::RowState{});
  CHECK(opened.workspace().stragglers() == nullptr);
  CHECK(!opened.window.commands().find("rows.by_stage")->isEnabled());
}

TEST_CASE("The window shows the figures that explain prints", "[gui][job]") {
  const TempFolder folder;
  const auto file = small_job(folder);
  QProcess explain;
  explain.start(PIPEWRIGHT_PROGRAM, {"explain", QString::fromStdString(file.string()), "--json"});
  REQUIRE(explain.waitForFinished(test::patience_ms));
  REQUIRE(explain.exitCode() == 0);
  const auto printed = nlohmann::json::parse(explain.readAllStandardOutput().toStdString());

  OpenedJob opened(file);
  const trace::StragglerReport& report = *opened.workspace().stragglers();
  CHECK(nlohmann::json::parse(document_of(report).dump()) == printed);

  const auto& told = printed["straggler"];
  const auto digits = [](const nlohmann::json& figure) {
    return QString::number(figure.get<double>(), 'f', 4);
  };
  const auto& worst = told["workers"][0];
  std::vector<std::string> figures;
  for (const auto& figure : gui::headline_of(opened.workspace()).figures)
    figures.push_back((figure.caption + " " + figure.value + ", " + figure.note).toStdString());
  REQUIRE(figures.size() >= 4);
  CHECK(figures[1] == QString("Slowdown %1, M_W %2, M_S %3")
                          .arg(digits(told["S"]), digits(told["M_W"]), digits(told["M_S"]))
                          .toStdString());
  CHECK(figures[2] == QString("Slowest worker dp %1, stage %2, S_w %3")
                          .arg(worst["dp"].get<int>())
                          .arg(worst["stage"].get<int>())
                          .arg(digits(worst["S_w"]))
                          .toStdString());
  const auto& best = told["remedies"][0];
  CHECK(figures[3] == QString("Best remedy %1 %, %2")
                          .arg(best["saves_percent"].get<double>(), 0, 'f', 2)
                          .arg(QString::fromStdString(best["kind"].get<std::string>()))
                          .toStdString());

  const auto& workers = opened.find<FigureTableView>("stragglers_workers");
  REQUIRE(workers.rowCount() == 4);
  for (int row = 0; row < 4; ++row)
    CHECK(workers.item(row, 1)->text() ==
          digits(told["workers"][static_cast<std::size_t>(row)]["S_w"]));
  const auto& remedies = opened.find<FigureTableView>("stragglers_remedies");
  REQUIRE(remedies.rowCount() > 0);
  CHECK(remedies.item(0, 4)->text().toStdString() == best["change"].get<std::string>());
  CHECK(remedies.item(0, 4)->toolTip().toStdString() ==
        best["change"].get<std::string>() + "\nSupposed: " + best["supposed"].get<std::string>());
  CHECK(opened.find<QLabel>("stragglers_headline")
            .text()
            .contains(QString::fromStdString(told["reading"].get<std::string>())));
}

TEST_CASE("A row of the table of workers leads to the worker's row", "[gui][job]") {
  const TempFolder folder;
  OpenedJob opened(folder.write("job.json", test::noisy_job(32, 2, 2, {1}, 5).trace()));
  auto& workers = opened.find<FigureTableView>("stragglers_workers");
  const int last = workers.rowCount() - 1;
  const int worker = workers.item(last, 0)->data(Qt::UserRole + 2).toInt();
  opened.timeline().verticalScrollBar()->setValue(0);
  REQUIRE(opened.timeline().model().layout.row_rect(worker).top() >
          opened.timeline().viewport()->height());
  workers.on_chosen(worker);
  CHECK(opened.timeline().model().layout.row_rect(worker).bottom() <
        opened.timeline().viewport()->height());
}

TEST_CASE("A job is opened by dropping its file", "[gui][job]") {
  const TempFolder folder;
  OpenedWindow opened;
  QMimeData data;
  data.setUrls({QUrl::fromLocalFile(QString::fromStdString(small_job(folder).string()))});
  QDragEnterEvent enter({10, 10}, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&opened.window, &enter);
  CHECK(enter.isAccepted());
  QDropEvent drop({10, 10}, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&opened.window, &drop);
  CHECK(opened.workspace().job());
}

TEST_CASE("An incomplete trace of a job opens as any other, with the reason", "[gui][job]") {
  const TempFolder folder;
  std::string trace = test::noisy_job(2, 2, 2, {1}, 1).trace();
  for (auto at = trace.find("forward-send"); at != std::string::npos;
       at = trace.find("forward-send"))
    trace.replace(at, 12, "nothing");
  gui::Workspace workspace;
  workspace.open(folder.write("job.json", trace));
  CHECK(workspace.job() == nullptr);
  REQUIRE(workspace.front());
  REQUIRE(workspace.document().notes.size() == 1);
  CHECK(workspace.document().notes[0].find("stage 0 has 0 of forward-send") != std::string::npos);
}

TEST_CASE("Only the visible ones of 4096 workers are painted", "[gui][job]") {
  const TempFolder folder;
  OpenedWindow opened(
      folder.write("job.json", test::noisy_job(64, 64, 1, {1}, 64 * 40 + 3).trace()));
  gui::TimelineView& view = opened.timeline();
  REQUIRE(view.front()->table().ranks == 4096 + 1);
  const auto at_most = [&] { return static_cast<std::size_t>(view.viewport()->height() / 18) + 2; };
  const auto paint = [&] {
    view.viewport()->repaint();
    CHECK(view.painted().rows > 5);
    CHECK(view.painted().rows <= at_most());
    CHECK(view.painted().labels <= 600);
    return view.painted();
  };
  paint();
  QScrollBar& bar = *view.verticalScrollBar();
  CHECK(bar.maximum() > 4000 * 18);
  // Everywhere, once ranks are in order, by replica and by stage.
  for (const JobGroups groups : {JobGroups::None, JobGroups::Replicas, JobGroups::Stages}) {
    opened.workspace().arrange({groups, JobOrder::SlowestFirst});
    for (const double part : {0.0, 0.3, 1.0}) {
      bar.setValue(static_cast<int>(part * bar.maximum()));
      CHECK(paint().headings <= (groups == JobGroups::None ? 0 : 2));
    }
  }
  // The last row ends at the end of the picture of the rows.
  double end = 0;
  for (const gui::PlacedRow& row : view.model().layout.rows.rows)
    end = std::max(end, row.pinned ? 0.0 : row.top + row.height);
  CHECK(end == view.model().layout.rows.height);

  REQUIRE(QTest::qWaitFor([&] { return !opened.workspace().is_explaining(); }, test::patience_ms));
  REQUIRE(opened.workspace().stragglers());
  opened.workspace().arrange({});
  CHECK(view.model().layout.rows.rows.at(1).rank == 64 * 40 + 3);
  CHECK(opened.find<FigureTableView>("stragglers_workers").rowCount() == 100);
  bar.setValue(bar.maximum() / 2);
  paint();
}

TEST_CASE("The job ST has the published results on its first row", "[gui][job][reference]") {
  OpenedJob opened(test::reference_file("traces/bytedance-straggler/timeline-ST.json.gz"));
  CHECK(opened.rows().at(1) == "dp 1, stage 3 (rank 7)");
  CHECK(gui::slowdown_words(*opened.workspace().stragglers()) ==
        "S 1.1787 · M_W 0.0314 (1 slowest worker) · M_S 1.2194 (last stage)");
}

}  // namespace job_test
