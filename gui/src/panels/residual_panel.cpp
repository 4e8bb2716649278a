#include "pipewright/gui/panels/residual_panel.hpp"

#include <QHBoxLayout>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "catalog.hpp"
#include "pipewright/gui/document/why.hpp"
#include "pipewright/gui/look/words.hpp"
#include "pipewright/gui/panels/titled.hpp"

namespace pipewright::gui {
namespace {

constexpr std::size_t most_actions = 200;

QString longer_by(double seconds, double of) {
  return QString("%1 (%2) %3")
      .arg(time_words(std::abs(seconds)), percent_words(of > 0 ? std::abs(seconds) / of : 0),
           seconds < 0 ? "shorter" : "longer");
}

}  // namespace

FigureTable rank_table(const loop::Residuals& residuals) {
  FigureTable table;
  table.columns = {
      {"rank", "", false},
      {"compute", "actions took longer (+) or shorter (-) than predicted", true},
      {"transfer", "idle while data were being transferred, or queued", true},
      {"waiting", "idle while other ranks computed: warm-up, cool-down, imbalance", true},
      {"launch", "idle though nothing delayed it", true},
      {"sum", "on every rank the difference of the iteration", true}};
  const bool has_memory =
      std::any_of(residuals.ranks.begin(), residuals.ranks.end(),
                  [](const loop::RankResidual& rank) { return rank.memory != plan::Bytes{}; });
  if (has_memory)
    table.columns.push_back({"memory", "of the peaks: measured minus predicted", true});
  for (std::size_t rank = 0; rank < residuals.ranks.size(); ++rank) {
    const loop::RankResidual& of = residuals.ranks[rank];
    FigureTable::Row row{{words_cell(QString("rank %1").arg(rank)), difference_cell(of.compute_s),
                          difference_cell(of.transfer_s), difference_cell(of.waiting_s),
                          difference_cell(of.launch_s), difference_cell(of.sum())},
                         static_cast<int>(rank)};
    if (has_memory) {
      const auto bytes = static_cast<double>(of.memory.value);
      row.cells.push_back({(bytes > 0 ? "+" : "") + byte_words(bytes), bytes, 0});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

FigureTable cause_table(const loop::Residuals& residuals) {
  FigureTable table;
  table.columns = {{"difference", "what it adds to the iteration", true},
                   {"cause", "along the measured critical path; click to see where", false}};
  double largest = 0;
  for (const loop::ResidualCause& cause : residuals.causes)
    largest = std::max(largest, std::abs(cause.seconds));
  int key = 0;
  for (const loop::ResidualCause& cause : residuals.causes)
    table.rows.push_back(
        {{difference_cell(cause.seconds, largest), words_cell(QString::fromStdString(cause.text))},
         key++});
  return table;
}

FigureTable action_table(const std::vector<ActionDifference>& actions) {
  FigureTable table;
  table.columns = {{"action", "click to see it", false},
                   {"rank", "", true},
                   {"expected", "in the timeline behind", true},
                   {"took", "", true},
                   {"difference", "", true}};
  double largest = 0;
  for (const ActionDifference& action : actions)
    largest = std::max(largest, std::abs(action.longer()));
  int key = 0;
  for (const ActionDifference& action : actions)
    table.rows.push_back(
        {{words_cell(QString::fromStdString(action.pair.action)),
          {QString::number(action.pair.rank), static_cast<double>(action.pair.rank), 0},
          time_cell(action.pair.predicted.value),
          time_cell(action.pair.measured.value),
          difference_cell(action.longer(), largest)},
         key++});
  return table;
}

ResidualPanel::ResidualPanel(Workspace& workspace, QWidget* parent)
    : Panel(workspace, {Workspace::Change::Tables}, parent) {
  QVBoxLayout* const layout = page_lines(this);
  headline_ = new QLabel;
  headline_->setObjectName("residual_headline");
  headline_->setWordWrap(true);
  headline_->setAlignment(Qt::AlignTop);
  layout->addWidget(headline_);
  tables_ = new QWidget;
  auto* columns = new QHBoxLayout(tables_);
  columns->setContentsMargins(0, 0, 0, 0);
  columns->setSpacing(2 * gap);
  budget_ = new QWidget;
  auto* budget = new QHBoxLayout(budget_);
  budget->setContentsMargins(0, 0, 0, 0);
  budget->setSpacing(2 * gap);
  ranks_ = new FigureTableView;
  ranks_->setObjectName("residual_ranks");
  causes_ = new FigureTableView;
  causes_->setObjectName("residual_causes");
  actions_ = new FigureTableView;
  actions_->setObjectName("residual_actions");
  budget->addWidget(titled("By rank", ranks_));
  budget->addWidget(titled("By cause", causes_), 1);
  columns->addWidget(budget_, 1);
  columns->addWidget(titled("Largest differences", actions_));
  layout->addWidget(tables_, 1);

  causes_->on_chosen = [this](int key) {
    const auto& residuals = workspace_.residuals();
    if (!residuals || workspace_.shown() != Workspace::Shown::Run)
      return;
    const Places places = places_of(workspace_, residuals->causes[static_cast<std::size_t>(key)]);
    if (on_places)
      on_places(places);
  };
  actions_->on_chosen = [this](int key) {
    const ActionDifference& action = worst_[static_cast<std::size_t>(key)];
    const auto event =
        find_event(*workspace_.front(), action.pair.rank, action.pair.action, action.nth);
    if (event && on_places)
      on_places({{*event}, PickedEvent{false, *event}});
  };
}

void ResidualPanel::set_theme(const Theme& theme) {
  theme_ = &theme;
  for (FigureTableView* table : {ranks_, causes_, actions_})
    table->set_theme(theme);
  renew();
}

void ResidualPanel::rebuild() {
  worst_ = worst_actions(workspace_, most_actions);
  actions_->show_table(action_table(worst_));
  const bool is_run = workspace_.shown() == Workspace::Shown::Run;
  const auto& residuals = workspace_.residuals();
  budget_->setVisible(residuals && is_run);
  tables_->setVisible((residuals && is_run) || !worst_.empty());
  const QString heat = soft(" &nbsp; H colors each action by its difference.", *theme_);
  if (residuals && is_run) {
    ranks_->show_table(rank_table(*residuals));
    causes_->show_table(cause_table(*residuals));
    headline_->setText(
        heading(QString("Measured %1, predicted %2: %3.")
                    .arg(time_words(residuals->measured_s), time_words(residuals->predicted_s),
                         longer_by(residuals->difference(), residuals->predicted_s))) +
        heat);
  } else if (!worst_.empty()) {
    const double now = workspace_.front()->length(), before = workspace_.ghost()->length();
    headline_->setText(
        heading(QString("Now %1, behind it %2: %3.")
                    .arg(time_words(now), time_words(before), longer_by(now - before, before))) +
        heat);
  } else {
    headline_->setText(
        heading("Nothing to compare with") + "<br><br>" +
        soft("Open the folder of a run: it has a prediction and a measurement. Or change the "
             "plan in What if, and its actions are compared with those before.",
             *theme_));
  }
}

PanelDescriptor panel::residuals() {
  return {.name = "residuals",
          .title = "Residuals",
          .help = "Where the error of the prediction goes.",
          .shortcut = "Alt+6",
          .dock = PanelDock::Details,
          .make = [](PanelHost& host) -> MadePanel {
            auto* residuals = new ResidualPanel(host.workspace);
            residuals->on_places = host.show_places;
            return residuals;
          }};
}

}  // namespace pipewright::gui
