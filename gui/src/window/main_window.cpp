#include "pipewright/gui/window/main_window.hpp"

#include <QApplication>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QMenuBar>
#include <QMimeData>
#include <QStatusBar>
#include <map>

#include "pipewright/gui/look/words.hpp"
#include "pipewright/gui/window/save_commands.hpp"

namespace pipewright::gui {
namespace {

/// Returns the arrows of a chain in which each event waits for the next one.
std::vector<Arrow> arrows_of(const std::vector<std::uint64_t>& chain) {
  std::vector<Arrow> arrows;
  for (std::size_t i = 1; i < chain.size(); ++i)
    arrows.push_back({chain[i], chain[i - 1]});
  return arrows;
}

}  // namespace

MainWindow::MainWindow()
    : commands_(this),
      theme_(&light_theme()),
      host_{
          .workspace = workspace_,
          .runs = run_control_,
          .show_places = [this](const Places& places) { show_places(places); },
          .show_row = [this](int row) { timeline_->show_row(row); },
          .trigger = [this](const char* command) { commands_.find(command)->trigger(); },
          .observe_section =
              [this](PanelHost::Section told) { section_observers_.push_back(std::move(told)); }} {
  setObjectName("pipewright");
  setWindowTitle("Pipewright");
  setAcceptDrops(true);
  resize(1440, 900);
  make_timeline();
  make_docks();
  make_panels();
  make_services();
  make_commands();
  make_menus();
  workspace_.observe([this](Workspace::Change change) { refresh(change); });
  set_dark(false);
  commands_.refresh();
}

void MainWindow::make_timeline() {
  auto* center = new QWidget;
  center_ = new QVBoxLayout(center);
  center_->setContentsMargins(0, 0, 0, 0);
  center_->setSpacing(0);
  timeline_ = new TimelineView;
  center_->addWidget(timeline_, 1);
  setCentralWidget(center);

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
  timeline_->on_scale = [this] { tell_section(); };
  timeline_->empty_text = "Open a scenario, a run's folder or a trace (Ctrl+O), or drop one here.";
}

void MainWindow::tell_section() {
  for (const PanelHost::Section& told : section_observers_)
    told(timeline_->scale(), timeline_->model().layout.plot_left,
         timeline_->model().layout.plot_width());
}

void MainWindow::show_places(const Places& places) {
  workspace_.pick(places.first);
  timeline_->reveal(places.first);
  timeline_->set_highlight(places.events);
}

void MainWindow::make_docks() {
  tabs_ = new QTabWidget;
  tabs_->setDocumentMode(true);
  tabs_->setObjectName("details");
  details_ = new QDockWidget("Details", this);
  details_->setObjectName("details_dock");
  details_->setTitleBarWidget(new QWidget);
  details_->setWidget(tabs_);
  addDockWidget(Qt::BottomDockWidgetArea, details_);
  setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
}

void MainWindow::make_panels() {
  for (const PanelDescriptor& declared : panels())
    add_panel(declared);
  resizeDocks({details_}, {260}, Qt::Vertical);
}

void MainWindow::add_panel(const PanelDescriptor& declared) {
  const MadePanel made = declared.make(host_);
  made.widget->setObjectName(declared.name);
  QDockWidget* dock = nullptr;
  switch (declared.dock) {
    case PanelDock::Above:
      center_->insertWidget(center_->indexOf(timeline_), made.widget);
      break;
    case PanelDock::Details:
      tabs_->setTabToolTip(tabs_->addTab(made.widget, declared.title), declared.help);
      dock = details_;
      break;
    case PanelDock::Side:
      dock = new QDockWidget(declared.title, this);
      dock->setObjectName(QString(declared.name) + "_dock");
      dock->setWidget(made.widget);
      addDockWidget(Qt::RightDockWidgetArea, dock);
      resizeDocks({dock}, {300}, Qt::Horizontal);
      break;
  }
  panels_.push_back({declared, made, dock});
}

QWidget* MainWindow::panel(const QString& name) const {
  for (const Shown& shown : panels_)
    if (name == shown.declared.name)
      return shown.made.widget;
  return nullptr;
}

void MainWindow::make_commands() {
  make_open_commands();
  make_plan_commands();
  make_view_commands();
  make_service_commands();
}

void MainWindow::make_open_commands() {
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
}

void MainWindow::make_plan_commands() {
  commands_.add(
      "edit.undo", "Edit", "Undo", QKeySequence::Undo, [this] { workspace_.undo(); },
      [this] { return workspace_.has_plan() && workspace_.history().can_undo(); });
  commands_.add(
      "edit.redo", "Edit", "Redo", QKeySequence::Redo, [this] { workspace_.redo(); },
      [this] { return workspace_.has_plan() && workspace_.history().can_redo(); });
  commands_.add(
      "plan.keep", "Edit", "Compare with the plan as it is now", QKeySequence("Ctrl+K"),
      [this] { workspace_.keep_as_baseline(); }, [this] { return workspace_.has_plan(); });
  make_panel_commands();
}

/// Adds the panels' commands, each of which brings its panel to the front.
void MainWindow::make_panel_commands() {
  for (const Shown& shown : panels_)
    for (const PanelCommand& command : shown.made.commands)
      commands_.add(
          command.id, command.menu, command.text, QKeySequence(command.shortcut),
          [this, name = QString(shown.declared.name), run = command.run] {
            show_view(name);
            run();
          },
          command.enabled);
}

void MainWindow::make_view_commands() {
  const auto has_ghost = [this] { return workspace_.ghost() != nullptr; };
  commands_.add(
      "view.run", "View", "Show the run with its prediction", QKeySequence("Ctrl+1"),
      [this] { workspace_.show(Workspace::Shown::Run); },
      [this] { return workspace_.document().measured.has_value(); });
  commands_.add(
      "view.plan", "View", "Show the plan", QKeySequence("Ctrl+2"),
      [this] { workspace_.show(Workspace::Shown::Plan); },
      [this] { return workspace_.has_plan(); });
  const auto add_switch = [this](const char* id, const char* text, const char* shortcut,
                                 std::function<void()> run, std::function<bool()> enabled) {
    QAction* action =
        commands_.add(id, "View", text, QKeySequence(shortcut), std::move(run), std::move(enabled));
    action->setCheckable(true);
    return action;
  };
  add_switch(
      "view.heat", "Color by difference from the prediction", "H",
      [this] { workspace_.set_heat(!workspace_.heat()); }, has_ghost);
  add_switch(
      "view.over", "Overlay both", "O",
      [this] {
        timeline_->set(&TimelineModel::overlaid, commands_.find("view.over")->isChecked());
      },
      has_ghost);
  add_switch("view.critical", "Critical path", "C",
             [this] {
               timeline_->set(&TimelineModel::show_critical,
                              commands_.find("view.critical")->isChecked());
             },
             {})
      ->setChecked(true);
  commands_.add(
      "view.fit", "View", "Fit the selection, or all", QKeySequence("F"),
      [this] { timeline_->fit(); }, [this] { return workspace_.front() != nullptr; });
  add_switch("view.dark", "Dark", "Ctrl+Shift+D", [this] { set_dark(!theme_->dark); }, {});
  for (const Shown& shown : panels_)
    if (shown.dock != nullptr)
      commands_.add(QString("view.") + shown.declared.name, "View",
                    QString("Show: ") + shown.declared.title, QKeySequence(shown.declared.shortcut),
                    [this, name = QString(shown.declared.name)] { show_view(name); });
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
  else if (workspace_.job() != nullptr)
    show_view("stragglers");
}

const std::vector<QString>& MainWindow::view_names() {
  static const std::vector<QString> names = [] {
    std::vector<QString> all{"timeline"};
    for (const PanelDescriptor& declared : panels())
      all.push_back(declared.name);
    return all;
  }();
  return names;
}

bool MainWindow::show_view(const QString& name) {
  for (const Shown& shown : panels_)
    if (name == shown.declared.name) {
      if (shown.dock != nullptr)
        shown.dock->show();
      if (shown.dock == details_)
        tabs_->setCurrentWidget(shown.made.widget);
      return true;
    }
  return name == "timeline";
}

void MainWindow::set_dark(bool dark) {
  theme_ = dark ? &dark_theme() : &light_theme();
  QApplication::setPalette(palette_of(*theme_));
  setStyleSheet(style_of(*theme_));
  timeline_->set_theme(*theme_);
  for (const Shown& shown : panels_)
    shown.made.set_theme(*theme_);
  theme_services();
  commands_.find("view.dark")->setChecked(dark);
}

void MainWindow::refresh(Workspace::Change change) {
  switch (change) {
    case Workspace::Change::Job:
      arrange_job();
      break;
    case Workspace::Change::Document:
      if (std::exchange(arranged_, false)) {  // the rows belong to another job
        timeline_->set_rows({});
        timeline_->set_notes({});
      }
      setWindowTitle(QString::fromStdString(workspace_.document().title) + " – Pipewright");
      break;
    case Workspace::Change::Plan:
      break;
    case Workspace::Change::Tables:
      timeline_->set(&TimelineModel::heat, workspace_.heat() && workspace_.ghost() != nullptr);
      timeline_->show_tables(workspace_.front(), workspace_.ghost());
      tell_section();
      break;
    case Workspace::Change::Pick:
      follow_pick(workspace_.picked());
      break;
  }
  refresh_services(change);
  commands_.refresh();
}

/// Keeps the rows that the user pinned, collapsed or filtered when the order changes.
void MainWindow::arrange_job() {
  const auto& report = workspace_.stragglers();
  RowState rows = job_rows(workspace_.job()->layout, report.get(), workspace_.arrangement());
  if (std::exchange(arranged_, true)) {
    rows.pinned = timeline_->model().rows.pinned;
    rows.collapsed = timeline_->model().rows.collapsed;
    rows.filter = timeline_->model().rows.filter;
  }
  timeline_->set_rows(std::move(rows));
  timeline_->set_notes(report ? job_notes(*report) : RowNotes{});
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
    // The event that produced its data, or the other end of its transfer.
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
