#include "pipewright/gui/panels/plans_panel.hpp"

#include <QHBoxLayout>
#include <QVBoxLayout>

#include "catalog.hpp"
#include "pipewright/gui/look/words.hpp"
#include "pipewright/gui/panels/titled.hpp"

namespace pipewright::gui {

FigureTable plan_list(const std::vector<search::DraftPlan>& plans) {
  FigureTable list;
  list.columns = {{"plan", "click to see its timeline; undo takes it back", false},
                  {"iteration", "", true},
                  {"per second", "in the unit of the model, such as tokens", true},
                  {"bubble", "idle time of a rank, on average", true},
                  {"memory", "on the rank with the highest peak", true}};
  for (std::size_t at = 0; at < plans.size(); ++at) {
    const search::Figures& figures = plans[at].figures;
    const double bubble = figures.bubble_s / figures.iteration_s;
    list.rows.push_back({{words_cell(QString::fromStdString(words_of(plans[at]))),
                          time_cell(figures.iteration_s),
                          {QString::number(figures.units_per_s, 'f', 0), figures.units_per_s, 0},
                          {QString::number(100 * bubble, 'f', 1) + " %", bubble, bubble},
                          bytes_cell(static_cast<double>(figures.peak.value))},
                         static_cast<int>(at)});
  }
  return list;
}

PlansPanel::PlansPanel(Workspace& workspace, QWidget* parent)
    : Panel(workspace, {Workspace::Change::Document, Workspace::Change::Plan}, parent) {
  QVBoxLayout* const layout = page_lines(this);
  auto* top = new QHBoxLayout;
  headline_ = new QLabel;
  headline_->setObjectName("plans_headline");
  headline_->setWordWrap(true);
  headline_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  search_ = new QPushButton("Search the fastest plans");
  QObject::connect(search_, &QPushButton::clicked, this, [this] { search(); });
  top->addWidget(headline_, 1);
  top->addWidget(search_, 0, Qt::AlignTop);
  layout->addLayout(top);
  list_ = new FigureTableView;
  list_->setObjectName("plans_list");
  list_->setAccessibleName("Plans");
  list_->on_chosen = [this](int key) {
    if (found_)
      workspace_.take_plan(found_->plans[static_cast<std::size_t>(key)]);
  };
  layout->addWidget(list_, 1);
  layout->addStretch();
  workspace.observe([this](Workspace::Change change) {
    if (change != Workspace::Change::Document)
      return;
    found_.reset();  // they belong to the previous document
    outdate();
  });
}

void PlansPanel::set_theme(const Theme& theme) {
  theme_ = &theme;
  list_->set_theme(theme);
  outdate();
}

void PlansPanel::search() {
  if (!workspace_.has_plan() || workspace_.is_looking_for_plans())
    return;
  found_.reset();
  workspace_.look_for_plans([this](const std::optional<Workspace::PlansFound>& found) {
    found_ = found ? *found : Workspace::PlansFound{.refusal = "there is too little memory"};
    outdate();
  });
  outdate();
}

QString PlansPanel::headline() const {
  if (!workspace_.has_plan())
    return heading("There is no plan to search from") + "<br><br>" +
           soft("Open a scenario or the folder of a run.", *theme_);
  if (workspace_.is_looking_for_plans())
    return heading("Searching …");
  if (!found_)
    return heading("Ranks, replicas, schedules and stage boundaries for the same batch") +
           "<br><br>" +
           soft("Each plan is simulated. The fastest are then listed here, and a click shows one.",
                *theme_);
  const QString refusal = QString::fromStdString(found_->refusal).toHtmlEscaped();
  if (!refusal.isEmpty())
    return heading("Nothing was found") + "<br><br>" + soft(refusal, *theme_);
  return heading(QString("%1 plans of %2 candidates")
                     .arg(found_->plans.size())
                     .arg(found_->candidates)) +
         "<br>" + soft("Click one to see it; Ctrl+Z takes it back.", *theme_);
}

void PlansPanel::rebuild() {
  headline_->setText(headline());
  search_->setVisible(workspace_.has_plan());
  search_->setEnabled(!workspace_.is_looking_for_plans());
  list_->setVisible(found_ && !found_->plans.empty());
  list_->show_table(plan_list(found_ ? found_->plans : std::vector<search::DraftPlan>{}));
}

PanelDescriptor panel::plans() {
  return {.name = "plans",
          .title = "Plans",
          .help = "The fastest plans for the same batch, searched on request.",
          .shortcut = "Alt+5",
          .dock = PanelDock::Details,
          .make = [](PanelHost& host) -> MadePanel {
            auto* plans = new PlansPanel(host.workspace);
            return {plans,
                    {{.id = "plan.search",
                      .menu = "Edit",
                      .text = "Search the fastest plans",
                      .shortcut = "Ctrl+P",
                      .run = [plans] { plans->search(); },
                      .enabled = [&host] { return host.workspace.has_plan(); }}}};
          }};
}

}  // namespace pipewright::gui
