#include "pipewright/gui/window/main_window.hpp"

#include <QApplication>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QMenuBar>
#include <QMimeData>
#include <QStatusBar>
#include <QVBoxLayout>
#include <map>

#include "pipewright/gui/look/words.hpp"
#include "pipewright/gui/window/save_commands.hpp"

namespace pipewright::gui {
namespace {

/// Arrows of a chain: each event waits for the one behind it.
std::vector<Arrow> arrows_of(const std::vector<std::uint64_t>& chain) {
  std::vector<Arrow> arrows;
  for (std::size_t i = 1; i < chain.size(); ++i)
    arrows.push_back({chain[i], chain[i - 1]});
  return arrows;
}

}  // namespace

MainWindow::MainWindow() : commands_(this), theme_(&light_theme()) {
  setObjectName("pipewright");
  setWindowTitle("Pipewright");
  setAcceptDrops(true);
  resize(1440, 900);
  make_panels();
  make_commands();
  make_menus();
  workspace_.observe([this](Workspace::Change change) { refresh(change); });
  set_dark(false);
  commands_.refresh();
}

void MainWindow::make_panels() {
  auto* centre = new QWidget;
  auto* layout = new QVBoxLayout(centre);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  figures_ = new FiguresBar(workspace_);
  timeline_ = new TimelineView;
  figures_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);  // a narrow window cuts it off
  layout->addWidget(figures_);
  layout->addWidget(timeline_, 1);
  setCentralWidget(centre);

  tabs_ = new QTabWidget;
  tabs_->setDocumentMode(true);
  tabs_->setObjectName("details");
  const auto add = [&](auto* panel, const char* name, const char* title, const char* help) {
    panel->setObjectName(name);
    tabs_->setTabToolTip(tabs_->addTab(panel, title), help);
    return panel;
  };
  why_ = add(new WhyPanel(workspace_), "why", "Why", "What you clicked on, and what held it back.");
  partition_ = add(new PartitionStrip(workspace_), "partition", "Partition",
                   "The layers and the borders of stages: drag one.");
  memory_ = add(new MemoryView(workspace_), "memory", "Memory",
                "What each rank holds over time, and who holds the peak.");
  savings_ = add(new SavingsPanel(workspace_), "savings", "Savings",
                 "What a millisecond less would save, wherever it is saved.");
  plans_ = add(new PlansPanel(workspace_), "plans", "Plans",
               "The fastest plans for the same batch, searched when you ask.");
  residuals_ = add(new ResidualPanel(workspace_), "residuals", "Residuals",
                   "Where the error of the prediction goes.");
  problems_ = add(new ProblemsPanel(workspace_), "problems", "Problems",
                  "What could not be read, and what was taken for granted.");
  run_panel_ = add(new RunPanel(workspace_, run_control_), "training", "Run",
                   "Runs or trains by this plan, and follows it.");
  details_ = new QDockWidget("Details", this);
  details_->setObjectName("details_dock");
  details_->setTitleBarWidget(new QWidget);
  details_->setWidget(tabs_);
  addDockWidget(Qt::BottomDockWidgetArea, details_);

  what_if_ = new WhatIfPanel(workspace_);
  what_if_->setObjectName("what_if");
  what_if_dock_ = new QDockWidget("What if", this);
  what_if_dock_->setObjectName("what_if_dock");
  what_if_dock_->setWidget(what_if_);
  addDockWidget(Qt::RightDockWidgetArea, what_if_dock_);
  setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
  resizeDocks({details_}, {260}, Qt::Vertical);
  resizeDocks({what_if_dock_}, {300}, Qt::Horizontal);

  hover_ = new QLabel;
  statusBar()->addWidget(hover_, 1);
  timeline_->on_hover = [this](const QString& words) {
    hover_->setText(QString(words).replace('\n', "  ·  "));
  };
  timeline_->on_picked = [this](const Picked& picked) {
    workspace_.pick(picked);
    if (!std::holds_alternative<std::monostate>(picked))
      show_view("why");
  };
  const auto show_places = [this](const Places& places) {
    workspace_.pick(places.first);
    timeline_->reveal(places.first);
    timeline_->set_highlight(places.events);
  };
  residuals_->on_places = show_places;
  savings_->on_places = show_places;
  timeline_->on_scale = [this] {
    memory_->follow(timeline_->scale(), timeline_->plot_left(), timeline_->plot_width());
  };
  timeline_->set_empty_text(
      "Open a scenario, a run's folder or a trace (Ctrl+O), or drop one here.");
  make_services();
}

void MainWindow::make_commands() {
  const auto has_plan = [this] { return workspace_.has_plan(); };
  const auto has_table = [this] { return workspace_.front() != nullptr; };
  commands_.add("file.open", "File", "Open file…", QKeySequence::Open, [this] {
    const QString path = QFileDialog::getOpenFileName(this, "Open");
    if (!path.isEmpty())
      open(path.toStdString());
  });
  commands_.add("file.open_folder", "File", "Open a run's folder…", QKeySequence("Ctrl+Shift+O"),
                [this] {
                  const QString path = QFileDialog::getExistingDirectory(this, "Open a run");
                  if (!path.isEmpty())
                    open(path.toStdString());
                });
  add_save_commands(commands_, workspace_, this);
  commands_.add("file.quit", "File", "Quit", QKeySequence::Quit, [this] { close(); });
  commands_.add(
      "edit.undo", "Edit", "Undo", QKeySequence::Undo, [this] { workspace_.undo(); },
      [this] { return workspace_.has_plan() && workspace_.history().can_undo(); });
  commands_.add(
      "edit.redo", "Edit", "Redo", QKeySequence::Redo, [this] { workspace_.redo(); },
      [this] { return workspace_.has_plan() && workspace_.history().can_redo(); });
  commands_.add(
      "plan.keep", "Edit", "Compare with the plan as it is now", QKeySequence("Ctrl+K"),
      [this] { workspace_.keep_as_baseline(); }, has_plan);
  commands_.add(
      "plan.search", "Edit", "Search the fastest plans", QKeySequence("Ctrl+P"),
      [this] {
        show_view("plans");
        plans_->search();
      },
      has_plan);
  commands_.add(
      "view.run", "View", "Show the run beside its prediction", QKeySequence("Ctrl+1"),
      [this] { workspace_.show(Workspace::Shown::Run); },
      [this] { return workspace_.document().measured.has_value(); });
  commands_.add(
      "view.plan", "View", "Show the plan", QKeySequence("Ctrl+2"),
      [this] { workspace_.show(Workspace::Shown::Plan); }, has_plan);
  QAction* heat = commands_.add(
      "view.heat", "View", "Colour by difference from the prediction", QKeySequence("H"),
      [this] { workspace_.set_heat(!workspace_.heat()); },
      [this] { return workspace_.ghost() != nullptr; });
  heat->setCheckable(true);
  QAction* over = commands_.add(
      "view.over", "View", "Lay both over each other", QKeySequence("O"),
      [this] { timeline_->set_overlaid(commands_.find("view.over")->isChecked()); },
      [this] { return workspace_.ghost() != nullptr; });
  over->setCheckable(true);
  QAction* critical = commands_.add(
      "view.critical", "View", "Critical path", QKeySequence("C"),
      [this] { timeline_->set_show_critical(commands_.find("view.critical")->isChecked()); });
  critical->setCheckable(true);
  critical->setChecked(true);
  commands_.add(
      "view.fit", "View", "Fit the selection, or all", QKeySequence("F"),
      [this] { timeline_->fit(); }, has_table);
  QAction* dark = commands_.add("view.dark", "View", "Dark", QKeySequence("Ctrl+Shift+D"),
                                [this] { set_dark(!theme_->dark); });
  dark->setCheckable(true);
  for (const QString& name : view_names())
    if (name != "timeline" && name != "what_if")
      commands_.add("view." + name, "View", "Show: " + name, {}, [this, name] { show_view(name); });
  make_service_commands();
}

void MainWindow::make_menus() {
  std::map<QString, QMenu*> menus;
  for (const char* title : {"File", "Edit", "View", "Run", "Help"})
    menus[title] = menuBar()->addMenu(title);
  for (const Command& command : commands_.all())
    if (!command.menu.isEmpty())
      menus[command.menu]->addAction(command.action);
  for (const auto& [title, menu] : menus)
    if (menu->isEmpty())
      menu->menuAction()->setVisible(false);
  make_recent_menu();
}

void MainWindow::open(const std::filesystem::path& path) {
  workspace_.open(path);
  keep_recent(path);
  if (!workspace_.document().problems.empty())
    show_view("problems");
}

const std::vector<QString>& MainWindow::view_names() {
  static const std::vector<QString> names{"timeline", "why",    "partition", "memory",
                                          "savings",  "plans",  "residuals", "problems",
                                          "training", "what_if"};
  return names;
}

bool MainWindow::show_view(const QString& name) {
  for (int tab = 0; tab < tabs_->count(); ++tab)
    if (tabs_->widget(tab)->objectName() == name) {
      details_->show();
      tabs_->setCurrentIndex(tab);
      return true;
    }
  if (name == "what_if")
    what_if_dock_->show();
  return name == "what_if" || name == "timeline";
}

void MainWindow::set_dark(bool dark) {
  theme_ = dark ? &dark_theme() : &light_theme();
  QApplication::setPalette(palette_of(*theme_));
  setStyleSheet(style_of(*theme_));
  timeline_->set_theme(*theme_);
  figures_->set_theme(*theme_);
  what_if_->set_theme(*theme_);
  why_->set_theme(*theme_);
  residuals_->set_theme(*theme_);
  savings_->set_theme(*theme_);
  plans_->set_theme(*theme_);
  memory_->set_theme(*theme_);
  partition_->set_theme(*theme_);
  problems_->set_theme(*theme_);
  theme_services();
  commands_.find("view.dark")->setChecked(dark);
}

void MainWindow::refresh(Workspace::Change change) {
  switch (change) {
    case Workspace::Change::Document:
      setWindowTitle(QString::fromStdString(workspace_.document().title) + " – Pipewright");
      break;
    case Workspace::Change::Plan:
      break;
    case Workspace::Change::Tables:
      timeline_->set_heat(workspace_.heat() && workspace_.ghost() != nullptr);
      timeline_->show_tables(workspace_.front(), workspace_.ghost());
      memory_->follow(timeline_->scale(), timeline_->plot_left(), timeline_->plot_width());
      break;
    case Workspace::Change::Pick:
      follow_pick(workspace_.picked());
      break;
  }
  refresh_services(change);
  commands_.refresh();
}

void MainWindow::follow_pick(const Picked& picked) {
  timeline_->pick(picked);
  std::vector<std::uint64_t> chain;
  const auto add = [&](const std::vector<int>& events) {
    for (const int event : events)
      if (const std::int64_t at = workspace_.table_event(event); at >= 0)
        chain.push_back(static_cast<std::uint64_t>(at));
  };
  if (const auto* idle = std::get_if<PickedIdle>(&picked)) {
    if (const auto why = workspace_.why_idle(idle->rank, idle->time))
      add(why->chain);
  } else if (const auto* event = std::get_if<PickedEvent>(&picked);
             event != nullptr && !event->ghost) {
    // What it waited for, and where its data go.
    const sim::Structure* structure = workspace_.structure();
    const int at = workspace_.structure_event(event->event);
    if (structure != nullptr && at >= 0) {
      const auto& of = structure->events()[at];
      if (of.data >= 0)
        add({at, of.data});
      else if (of.partner >= 0)
        add({of.partner, at});
    }
  } else if (const auto* area = std::get_if<PickedArea>(&picked)) {
    hover_->setText(QString("%1 selected on %2 rows")
                        .arg(time_words(area->last - area->first))
                        .arg(area->ranks.size()));
  }
  timeline_->set_highlight(chain);
  timeline_->set_arrows(arrows_of(chain));
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls())
    event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  for (const QUrl& url : event->mimeData()->urls())
    if (url.isLocalFile()) {
      open(url.toLocalFile().toStdString());
      return;
    }
}

}  // namespace pipewright::gui
