#include "pipewright/gui/panels/savings_panel.hpp"

#include <QHBoxLayout>
#include <QVBoxLayout>
#include <algorithm>
#include <numeric>

#include "catalog.hpp"
#include "pipewright/gui/document/why.hpp"
#include "pipewright/gui/look/words.hpp"
#include "pipewright/gui/panels/choice.hpp"
#include "pipewright/gui/panels/titled.hpp"
#include "pipewright/loop/predict/prediction.hpp"

namespace pipewright::gui {
namespace {

constexpr std::size_t most_slack = 500;
constexpr std::size_t most_shares = 9;
constexpr int after_ms = 200;  // so that dragging a stage boundary does not wait for it

QString name_of(const loop::Saving& saving) {
  switch (saving.part) {
    case loop::Saving::Part::Stage:
      return QString("stage %1").arg(saving.stage);
    case loop::Saving::Part::Layer:
      return QString("layer %1").arg(saving.layer);
    case loop::Saving::Part::Link:
      return QString("link %1 → %2").arg(saving.from).arg(saving.to);
  }
  return {};
}

/// Returns the parts of the critical path; small parts are one share.
std::vector<Share> critical_shares(const search::Answer& answer, const Theme& theme) {
  std::vector<Share> shares;
  double rest = 0;
  for (const auto& [name, seconds] :
       loop::critical_shares(*answer.plan.structure, answer.times, answer.critical)) {
    if (shares.size() + 1 >= most_shares) {
      rest += seconds;
      continue;
    }
    QColor color = theme.owners[shares.size() % theme.owners.size()];
    if (name == "transfers")
      color = theme.send;
    else if (name == "reductions")
      color = theme.reduce;
    shares.push_back({QString::fromStdString(name), "its part of the critical path", seconds,
                      time_words(seconds), color});
  }
  if (rest > 0)
    shares.push_back({"the rest", "other stages", rest, time_words(rest), theme.idle});
  return shares;
}

}  // namespace

FigureTable saving_table(const std::vector<loop::Saving>& savings,
                         std::optional<loop::Saving::Part> part) {
  FigureTable table;
  table.columns = {{"what", "click to see where it runs", false},
                   {"saves", "milliseconds of an iteration for each millisecond less", true},
                   {"in words", "", false}};
  double largest = 0;
  for (const loop::Saving& saving : savings)
    largest = std::max(largest, saving.saved);
  for (std::size_t i = 0; i < savings.size(); ++i) {
    const loop::Saving& saving = savings[i];
    if (part && saving.part != *part)
      continue;
    table.rows.push_back({{words_cell(name_of(saving)),
                           {QString::number(saving.saved, 'f', 2) + " ms", saving.saved,
                            largest > 0 ? saving.saved / largest : 0},
                           words_cell(QString::fromStdString(saving.text))},
                          static_cast<int>(i)});
  }
  return table;
}

FigureTable slack_table(const search::Answer& answer, const std::vector<double>& slack,
                        std::size_t most) {
  const plan::Dependencies& events = answer.plan.structure->events();
  std::vector<int> sorted;
  for (int event = 0; event < events.size(); ++event)
    if (plan::is_compute(events[event].instruction->kind))
      sorted.push_back(event);
  const auto room = [&](int event) { return slack[static_cast<std::size_t>(event)]; };
  const std::size_t shown = std::min(most, sorted.size());
  std::partial_sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(shown),
                    sorted.end(),
                    [&](int a, int b) { return room(a) != room(b) ? room(a) > room(b) : a < b; });
  sorted.resize(shown);
  FigureTable table;
  table.columns = {{"action", "click to see it", false},
                   {"rank", "", true},
                   {"takes", "", true},
                   {"could end later by", "without lengthening the iteration", true}};
  const double largest = sorted.empty() ? 0 : room(sorted.front());
  for (const int event : sorted) {
    const auto& times = answer.times[event];
    table.rows.push_back(
        {{words_cell(QString::fromStdString(plan::to_string(*events[event].instruction))),
          {QString::number(events[event].rank), static_cast<double>(events[event].rank), 0},
          time_cell(times.end - times.start),
          {time_words(room(event)), room(event), largest > 0 ? room(event) / largest : 0}},
         event});
  }
  return table;
}

SavingsPanel::SavingsPanel(Workspace& workspace, QWidget* parent)
    : Panel(workspace, {Workspace::Change::Plan}, parent, after_ms) {
  QVBoxLayout* const layout = page_lines(this);
  auto* top = new QHBoxLayout;
  headline_ = new QLabel;
  headline_->setObjectName("savings_headline");
  headline_->setWordWrap(true);
  part_ = new Choice;
  part_->setAccessibleName("What is listed");
  part_->addItems({"Stages, layers and links", "Stages", "Layers", "Links"});
  top->addWidget(headline_, 1);
  top->addWidget(part_);
  layout->addLayout(top);
  columns_ = new QWidget;
  auto* columns = new QHBoxLayout(columns_);
  columns->setContentsMargins(0, 0, 0, 0);
  columns->setSpacing(3 * gap);
  savings_ = new FigureTableView;
  savings_->setObjectName("savings_table");
  critical_ = new ShareBar;
  slack_ = new FigureTableView;
  slack_->setObjectName("slack_table");
  columns->addWidget(titled("A millisecond less", savings_), 1);
  columns->addWidget(critical_, 0, Qt::AlignTop);
  columns->addWidget(titled("Slack: could take longer without loss", slack_));
  layout->addWidget(columns_, 1);

  QObject::connect(part_, &QComboBox::currentIndexChanged, this, [this] { show_savings(); });
  savings_->on_chosen = [this](int key) {
    const loop::Saving& saving = workspace_.savings()[static_cast<std::size_t>(key)];
    if (on_places)
      on_places(saving.part == loop::Saving::Part::Link
                    ? places_of_link(workspace_, saving.from, saving.to)
                    : places_of_stage(workspace_, saving.stage));
  };
  slack_->on_chosen = [this](int key) {
    if (workspace_.answer() == nullptr || !workspace_.front())
      return;
    const auto& own = workspace_.answer()->plan.structure->events()[key];
    const auto event = find_event(*workspace_.front(), own.rank, plan::to_string(*own.instruction));
    if (event && on_places)
      on_places({{*event}, PickedEvent{false, *event}});
  };
}

void SavingsPanel::set_theme(const Theme& theme) {
  theme_ = &theme;
  savings_->set_theme(theme);
  critical_->set_theme(theme);
  slack_->set_theme(theme);
  outdate();
}

void SavingsPanel::show_savings() {
  if (workspace_.answer() == nullptr)
    return;
  using Part = loop::Saving::Part;
  const int index = part_->currentIndex();
  savings_->show_table(
      saving_table(workspace_.savings(),
                   index == 0 ? std::nullopt : std::optional(static_cast<Part>(index - 1))));
}

void SavingsPanel::rebuild() {
  const search::Answer* answer = workspace_.answer();
  columns_->setVisible(answer != nullptr);
  part_->setVisible(answer != nullptr);
  if (answer == nullptr) {
    headline_->setText(
        heading(workspace_.has_plan() ? "This plan is not possible" : "There is no plan") +
        "<br><br>" +
        soft(workspace_.has_plan()
                 ? QString::fromStdString(workspace_.refusal().text).toHtmlEscaped()
                 : QString("Open a scenario or the folder of a run to see what would shorten its "
                           "iteration."),
             *theme_));
    return;
  }
  show_savings();
  const auto& savings = workspace_.savings();
  headline_->setText(
      heading(savings.empty() ? QString("Nothing to save")
                              : upper_first(QString::fromStdString(savings.front().text)) + "."));
  critical_->show_shares("The critical path", time_words(answer->times.iteration),
                         critical_shares(*answer, *theme_));
  slack_->show_table(slack_table(*answer, workspace_.slack(), most_slack));
}

PanelDescriptor panel::savings() {
  return {.name = "savings",
          .title = "Savings",
          .help = "What a millisecond less would save, wherever it is saved.",
          .shortcut = "Alt+4",
          .dock = PanelDock::Details,
          .make = [](PanelHost& host) -> MadePanel {
            auto* savings = new SavingsPanel(host.workspace);
            savings->on_places = host.show_places;
            return savings;
          }};
}

}  // namespace pipewright::gui
