#include "pipewright/gui/panels/stragglers_panel.hpp"

#include <QHBoxLayout>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <utility>

#include "catalog.hpp"
#include "pipewright/gui/look/words.hpp"
#include "pipewright/gui/panels/choice.hpp"
#include "pipewright/gui/panels/titled.hpp"
#include "pipewright/trace/straggler/shown_remedies.hpp"

namespace pipewright::gui {
namespace {

constexpr std::size_t most_slow_workers = 100;  // the timeline shows all of them
constexpr std::size_t most_slow_places = 8;     // stages, and the same number of replicas

QString four_digits(double figure) { return QString::number(figure, 'f', 4); }

FigureCell quotient_cell(double figure) { return {four_digits(figure), figure, 0}; }

FigureCell saved_cell(double part) { return {QString::number(100 * part, 'f', 2) + " %", part, 0}; }

QString html_of_std(const std::string& text) {
  return QString::fromStdString(text).toHtmlEscaped();
}

FigureTable::Row slowdown_row(const QString& name, double slowdown) {
  return {{words_cell(name), quotient_cell(slowdown)}};
}

/// Returns the rows with the largest slowdown first.
std::vector<FigureTable::Row> slowest_places(const std::vector<trace::Slowdown>& places,
                                             const QString& name, std::size_t most) {
  std::vector<FigureTable::Row> rows;
  for (std::size_t at = 0; at < places.size(); ++at)
    rows.push_back(slowdown_row(name + QString(" %1").arg(at), places[at].all));
  const auto last = rows.begin() + static_cast<std::ptrdiff_t>(std::min(most, rows.size()));
  const auto longer = [](const FigureTable::Row& a, const FigureTable::Row& b) {
    return a.cells[1].number > b.cells[1].number;
  };
  std::partial_sort(rows.begin(), last, rows.end(), longer);
  rows.erase(last, rows.end());
  return rows;
}

QString job_words(const trace::StragglerReport& report) {
  const trace::JobLayout& layout = report.steps.plan.layout;
  const auto& numbers = report.steps.numbers;
  QStringList words{QString("%1 of %2")
                        .arg(counted(layout.replicas, "replica", "replicas"),
                             counted(layout.stages, "stage", "stages")),
                    counted(report.steps.plan.schedule.microbatches, "microbatch", "microbatches"),
                    // "1f1b" of "1f1b, 8 ranks, 12 microbatches"
                    "schedule " + html_of_std(report.schedule).section(',', 0, 0),
                    QString("%1, %2 to %3")
                        .arg(counted(numbers.size(), "step", "steps"))
                        .arg(numbers.front())
                        .arg(numbers.back()),
                    QString("a step of %1, replayed %2, ideal %3")
                        .arg(time_words(trace::mean_of(report.steps.measured)),
                             time_words(trace::mean_of(report.metrics.replayed_s)),
                             time_words(trace::mean_of(report.metrics.ideal_step_s)))};
  if (!report.steps.left_out.empty())
    words.insert(4, QString("%1 more incomplete").arg(report.steps.left_out.size()));
  return words.join(" &nbsp;·&nbsp; ");
}

QComboBox* make_choice(const char* name, const char* spoken, const QStringList& choices) {
  auto* choice = new Choice;
  choice->setObjectName(name);
  choice->setAccessibleName(spoken);
  choice->addItems(choices);
  return choice;
}

FigureTableView* make_table(const char* name) {
  auto* table = new FigureTableView;
  table->setObjectName(name);
  return table;
}

}  // namespace

FigureTable worker_table(const trace::StragglerReport& report, std::size_t most) {
  FigureTable table;
  table.columns = {
      {"worker", "click to see its row", false},
      {"S_w", "its cost: the smaller of the slowdowns of its stage and its replica", true},
      {"computes", "per step, on average", true},
      {"to peers", "relative to the same stage of the other replicas", true},
      {"by itself", "the part of it that long microbatches do not explain", true}};
  for (std::size_t at = 0; at < std::min(most, report.workers.size()); ++at) {
    const auto worker = static_cast<std::size_t>(report.workers[at]);
    table.rows.push_back(
        {{words_cell(QString::fromStdString(
              trace::worker_name(report.steps.plan.layout, report.workers[at]))),
          quotient_cell(report.metrics.by_worker[worker]), time_cell(report.compute_s[worker]),
          quotient_cell(report.over_peers[worker]), quotient_cell(report.own_slowness[worker])},
         report.workers[at]});
  }
  return table;
}

FigureTable slowdown_table(const trace::StragglerReport& report, std::size_t most_places) {
  FigureTable table;
  table.columns = {{"alone as recorded", "all others with ideal durations", false},
                   {"S", "step time divided by that with ideal durations of all operations", true}};
  table.rows = slowest_places(report.metrics.by_stage, "stage", most_places);
  for (FigureTable::Row& row : slowest_places(report.metrics.by_replica, "dp", most_places))
    table.rows.push_back(std::move(row));
  for (const auto& [operation, slowdown] : report.metrics.by_operation)
    if (std::abs(slowdown.all - 1) >= trace::min_shown_fraction)
      table.rows.push_back(slowdown_row(QString::fromStdString(operation), slowdown.all));
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const auto& a, const auto& b) {
    return a.cells[1].number > b.cells[1].number;
  });
  return table;
}

FigureTable remedy_table(const trace::StragglerReport& report) {
  FigureTable table;
  table.columns = {{"saves", "of the mean step", true},
                   {"learnt", "on every second step, from which it was learned", true},
                   {"kept", "on the others", true},
                   {"step", "replayed with it", true},
                   {"simulated", "the tooltip of each states its assumptions", false}};
  for (const trace::Remedy* const remedy : trace::shown_remedies(report.remedies)) {
    FigureCell change = words_cell(QString::fromStdString(remedy->change));
    change.help = "Supposed: " + QString::fromStdString(remedy->supposed);
    table.rows.push_back(
        {{saved_cell(remedy->saves.part), saved_cell(remedy->on_learnt.part),
          report.remedies.has_kept ? saved_cell(remedy->on_kept.part) : FigureCell{},
          time_cell(remedy->step_s), std::move(change)}});
  }
  return table;
}

QString slowdown_words(const trace::StragglerReport& report) {
  const trace::StragglerMetrics& metrics = report.metrics;
  return QString("S %1 · M_W %2 (%3) · M_S %4 (last stage)")
      .arg(four_digits(metrics.slowdown.all), four_digits(metrics.workers_explain.share),
           counted(metrics.slowest_workers, "slowest worker", "slowest workers"),
           four_digits(metrics.last_stage_explains.share));
}

StragglersPanel::StragglersPanel(Workspace& workspace, QWidget* parent)
    : Panel(workspace, {Workspace::Change::Document, Workspace::Change::Job}, parent) {
  QVBoxLayout* const layout = page_lines(this);
  auto* top = new QHBoxLayout;
  headline_ = new QLabel;
  headline_->setObjectName("stragglers_headline");
  headline_->setWordWrap(true);
  headline_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  top->addWidget(headline_, 1);
  top->addWidget(make_arrangement(), 0, Qt::AlignTop);
  layout->addLayout(top);
  layout->addWidget(make_tables(), 1);
  layout->addStretch();
}

/// Creates the two switches for the timeline's rows.
QWidget* StragglersPanel::make_arrangement() {
  groups_ = make_choice("stragglers_groups", "How rows are grouped",
                        {"Worker by worker", "By replica", "By stage"});
  order_ = make_choice("stragglers_order", "How rows are ordered",
                       {"Slowest on top", "In order of ranks"});
  arrangement_ = new QWidget;
  auto* choices = new QHBoxLayout(arrangement_);
  choices->setContentsMargins(0, 0, 0, 0);
  for (QComboBox* const choice : {groups_, order_}) {
    choices->addWidget(choice);
    QObject::connect(choice, &QComboBox::activated, this, [this] { arrange(); });
  }
  return arrangement_;
}

QWidget* StragglersPanel::make_tables() {
  workers_ = make_table("stragglers_workers");
  workers_->on_chosen = [this](int worker) {
    if (on_row)
      on_row(worker);
  };
  slowdowns_ = make_table("stragglers_slowdowns");
  remedies_ = make_table("stragglers_remedies");
  tables_ = new QWidget;
  auto* columns = new QHBoxLayout(tables_);
  columns->setContentsMargins(0, 0, 0, 0);
  columns->setSpacing(2 * gap);
  columns->addWidget(titled("Workers, the slowest first", workers_));
  columns->addWidget(titled("What it comes from", slowdowns_));
  columns->addWidget(titled("What would help", remedies_), 1);
  return tables_;
}

void StragglersPanel::set_theme(const Theme& theme) {
  theme_ = &theme;
  for (FigureTableView* const table : {workers_, slowdowns_, remedies_})
    table->set_theme(theme);
  outdate();
}

void StragglersPanel::arrange() {
  workspace_.arrange({.groups = static_cast<JobGroups>(groups_->currentIndex()),
                      .order = static_cast<JobOrder>(order_->currentIndex())});
}

QString StragglersPanel::headline() const {
  if (workspace_.job() == nullptr)
    return heading("This is not the trace of a whole job") + "<br><br>" +
           soft(
               "Open one, with all workers of a training in one file, to see which workers slow it "
               "down and "
               "what would help, as `pipewright explain` reports it.",
               *theme_);
  if (workspace_.is_explaining())
    return heading("Replaying the job …") + "<br><br>" +
           soft("Rows are in the order of ranks until the slow workers are known.", *theme_);
  if (workspace_.stragglers() == nullptr)
    return heading("This job is not explained") + "<br><br>" +
           soft(html_of_std(workspace_.job_refusal()), *theme_);
  const trace::StragglerReport& report = *workspace_.stragglers();
  return heading(slowdown_words(report).toHtmlEscaped()) + " &nbsp; " +
         html_of_std(trace::reading_of(report)) + ".<br>" + soft(job_words(report), *theme_);
}

void StragglersPanel::rebuild() {
  const auto& report = workspace_.stragglers();
  headline_->setText(headline());
  arrangement_->setVisible(workspace_.job() != nullptr);
  tables_->setVisible(report != nullptr);
  const JobArrangement now = workspace_.arrangement();
  groups_->setCurrentIndex(static_cast<int>(now.groups));
  order_->setCurrentIndex(static_cast<int>(now.order));
  if (report == nullptr || report == shown_)
    return;  // keep the tables, and how the user sorted them
  shown_ = report;
  workers_->show_table(worker_table(*report, most_slow_workers));
  slowdowns_->show_table(slowdown_table(*report, most_slow_places));
  remedies_->show_table(remedy_table(*report));
}

PanelDescriptor panel::stragglers() {
  return {.name = "stragglers",
          .title = "Stragglers",
          .help = "The workers that slow a whole job down, and what would help.",
          .shortcut = "Alt+0",
          .dock = PanelDock::Details,
          .make = [](PanelHost& host) -> MadePanel {
            auto* stragglers = new StragglersPanel(host.workspace);
            stragglers->on_row = host.show_row;
            return stragglers;
          }};
}

}  // namespace pipewright::gui
