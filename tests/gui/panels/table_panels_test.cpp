// Checks panels of tables: their contents, and that all of it is readable.
#include <QPushButton>
#include <QScrollBar>
#include <numeric>

#include "gui/support/mouse.hpp"
#include "gui/support/opened_window.hpp"
#include "pipewright/gui/panels/plans_panel.hpp"
#include "pipewright/gui/panels/residual_panel.hpp"
#include "pipewright/gui/panels/savings_panel.hpp"
#include "pipewright/gui/panels/why_panel.hpp"

namespace table_panels_test {

using namespace pipewright;
using gui::FigureTableView;
using test::OpenedWindow;

double number(const FigureTableView& view, std::size_t row, std::size_t column) {
  return view.table().rows.at(row).cells.at(column).number;
}

/// Checks that all columns are visible, and that each word of a sentence is on one of its lines.
void check_readable(const FigureTableView& view) {
  CAPTURE(view.objectName().toStdString(), view.width());
  CHECK(view.horizontalScrollBar()->maximum() == 0);
  int width = 0;
  for (int column = 0; column < view.columnCount(); ++column)
    width += view.columnWidth(column);
  CHECK(width == view.viewport()->width());
  for (int row = 0; row < view.rowCount(); ++row)
    for (int column = 0; column < view.columnCount(); ++column) {
      const QTableWidgetItem& item = *view.item(row, column);
      const QRect room(0, 0, view.columnWidth(column) - 6, 10'000);
      const QRect needed = QFontMetrics(view.font())
                               .boundingRect(room, Qt::TextWordWrap | Qt::AlignLeft, item.text());
      CAPTURE(row, column, item.text().toStdString());
      CHECK(needed.height() <= view.rowHeight(row));
      CHECK(needed.width() <= room.width());
    }
}

TEST_CASE("Residuals show each rank's part, and each cause in complete sentences",
          "[gui][panels]") {
  OpenedWindow opened;
  opened.window.resize(1920, 1000);
  opened.show<gui::ResidualPanel>("residuals");
  const auto& residuals = opened.workspace().residuals();
  REQUIRE(residuals);
  auto& ranks = opened.find<FigureTableView>("residual_ranks");
  auto& causes = opened.find<FigureTableView>("residual_causes");
  auto& actions = opened.find<FigureTableView>("residual_actions");
  REQUIRE(ranks.rowCount() == 2);
  for (std::size_t rank = 0; rank < 2; ++rank)
    CHECK(number(ranks, rank, 5) == Approx(residuals->difference()).margin(1e-9));
  REQUIRE(causes.rowCount() == static_cast<int>(residuals->causes.size()));
  CHECK(causes.item(0, 1)->text() == QString::fromStdString(residuals->causes[0].text));
  CHECK(actions.rowCount() > 10);
  CHECK(std::abs(number(actions, 0, 4)) >= std::abs(number(actions, 1, 4)));
  CHECK(opened.find<QLabel>("residual_headline").text().contains("Measured"));
  for (FigureTableView* view : {&ranks, &causes, &actions})
    check_readable(*view);
}

TEST_CASE("Residuals say what is missing if nothing was measured", "[gui][panels]") {
  OpenedWindow opened(test::opened_plan);
  opened.show<gui::ResidualPanel>("residuals");
  CHECK(opened.find<QLabel>("residual_headline").text().contains("Nothing to compare with"));
  CHECK_FALSE(opened.find<FigureTableView>("residual_ranks").isVisible());
  opened.workspace().set("pipeline.microbatches=8");  // two plans can be compared
  CHECK(opened.find<FigureTableView>("residual_actions").isVisible());
}

TEST_CASE("Savings of stages, layers and links show the largest first", "[gui][panels]") {
  OpenedWindow opened(test::opened_plan);
  opened.window.resize(1920, 1000);
  opened.show<gui::SavingsPanel>("savings");
  const auto& savings = opened.workspace().savings();
  REQUIRE_FALSE(savings.empty());
  auto& table = opened.find<FigureTableView>("savings_table");
  REQUIRE(table.rowCount() == static_cast<int>(savings.size()));
  CHECK(number(table, 0, 1) == savings.front().saved);
  for (std::size_t row = 1; row < savings.size(); ++row)
    CHECK(number(table, row, 1) <= number(table, row - 1, 1));
  check_readable(table);
  check_readable(opened.find<FigureTableView>("slack_table"));
  CHECK(opened.find<FigureTableView>("slack_table").rowCount() > 10);

  auto* part = opened.window.panel("savings")->findChild<QComboBox*>();
  part->setCurrentIndex(part->findText("Links"));
  REQUIRE(table.rowCount() > 0);
  for (int row = 0; row < table.rowCount(); ++row)
    CHECK(table.item(row, 0)->text().startsWith("link "));
  test::click(*table.viewport(), table.visualItemRect(table.item(0, 0)).center());
  CHECK(std::holds_alternative<gui::PickedEvent>(opened.workspace().picked()));
}

TEST_CASE("Savings are updated for another plan, and disappear with it", "[gui][panels]") {
  OpenedWindow opened(test::opened_plan);
  opened.show<gui::SavingsPanel>("savings");
  auto& table = opened.find<FigureTableView>("savings_table");
  const double before = number(table, 0, 1);
  opened.workspace().set("pipeline.microbatches=4");
  CHECK(QTest::qWaitFor([&] { return number(table, 0, 1) != before; }, test::patience_ms));
  opened.workspace().open(test::opened_run);
  opened.workspace().set("model.blocks=7");  // the costs belong to another model
  auto& headline = opened.find<QLabel>("savings_headline");
  CHECK(
      QTest::qWaitFor([&] { return headline.text().contains("not possible"); }, test::patience_ms));
}

TEST_CASE("Plans are listed with their figures", "[gui][panels]") {
  OpenedWindow opened(test::opened_plan);
  opened.window.resize(1920, 1000);
  opened.show<gui::PlansPanel>("plans");
  auto& headline = opened.find<QLabel>("plans_headline");
  auto& list = opened.find<FigureTableView>("plans_list");
  CHECK(headline.text().contains("for the same batch"));
  CHECK_FALSE(list.isVisible());
  auto* search = opened.window.panel("plans")->findChild<QPushButton*>();
  test::click(*search, search->rect().center());
  CHECK(headline.text().contains("Searching"));
  CHECK_FALSE(search->isEnabled());
  REQUIRE(QTest::qWaitFor([&] { return list.rowCount() > 0; }, test::patience_ms));
  CHECK(search->isEnabled());
  CHECK(headline.text().contains(QString("%1 plans of ").arg(list.rowCount())));
  for (std::size_t row = 1; row < list.table().rows.size(); ++row)
    CHECK(number(list, row, 1) >= number(list, row - 1, 1));  // the fastest first
  QApplication::processEvents();
  check_readable(list);
  opened.workspace().open(test::opened_run);  // they belong to another document
  CHECK(headline.text().contains("for the same batch"));
}

TEST_CASE("Why begins with a summary of where the time goes", "[gui][panels]") {
  OpenedWindow opened;
  auto& why = opened.show<gui::WhyPanel>("why");
  CHECK(why.spoken().startsWith("Where does the time go?"));
  CHECK(why.spoken().contains("Ranks stand idle for "));
  opened.workspace().pick(gui::picked_in(*opened.workspace().front(), {0, 1, 0.1, 0.2}));
  CHECK(why.spoken().startsWith("<b>100.0 ms from 100.0 ms to 200.0 ms</b>"));
  check_readable(why.table());
  OpenedWindow empty{std::filesystem::path()};
  CHECK(empty.show<gui::WhyPanel>("why").spoken().startsWith("Nothing is open yet"));
}

}  // namespace table_panels_test
