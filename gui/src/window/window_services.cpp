// Services other than panels: pictures, runs, the palette, search, notes, help, and persistent
// settings.

#include <fmt/format.h>

#include <QApplication>
#include <QCloseEvent>
#include <QFileDialog>
#include <QMenu>
#include <QMenuBar>
#include <QMessageBox>
#include <QRegularExpression>
#include <QStatusBar>
#include <QTimer>

#include "pipewright/gui/document/example.hpp"
#include "pipewright/gui/window/main_window.hpp"
#include "pipewright/gui/window/pictures.hpp"
#include "pipewright/gui/window/row_commands.hpp"
#include "pipewright/gui/window/shortcuts_sheet.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/program/instruction.hpp"

namespace pipewright::gui {
namespace {

constexpr int said_for = 8000;  // ms
constexpr int most_ranks = 64;  // that the palette lists before one is typed

QString shown_path(const std::filesystem::path& path) {
  return QString::fromStdString(path.string());
}

}  // namespace

void MainWindow::say(const QString& words) { statusBar()->showMessage(words, said_for); }

void MainWindow::attempt(const std::function<void()>& what) {
  try {
    what();
  } catch (const std::exception& error) {
    say(QString::fromUtf8(error.what()).section('\n', 0, 0));
  }
}

void MainWindow::make_services() {
  find_bar_ = new FindBar(*timeline_);
  center_->addWidget(find_bar_);
  notes_ = new NotesLayer(*timeline_);
  notes_->on_clicked = [this](std::size_t note) { edit_note_at(note); };
  palette_ =
      new CommandPalette([this](const QString& typed) { return palette_entries(typed); }, this);
  run_control_.observe([this] {
    commands_.refresh();
    follow_run();
  });
  make_tour();
}

void MainWindow::make_service_commands() {
  make_file_commands();
  add_row_commands(commands_, workspace_, *timeline_);
  add_job_commands(commands_, workspace_);
  const auto has_table = [this] { return workspace_.front() != nullptr; };
  commands_.add(
      "find.actions", "Edit", "Find actions…", QKeySequence::Find, [this] { find_bar_->find(); },
      has_table);
  commands_.add(
      "find.next", "Edit", "Next match", QKeySequence("F3"), [this] { find_bar_->step(true); },
      has_table);
  commands_.add(
      "find.before", "Edit", "Previous match", QKeySequence("Shift+F3"),
      [this] { find_bar_->step(false); }, has_table);
  commands_.add(
      "rows.filter", "View", "Filter ranks…", QKeySequence("Ctrl+L"),
      [this] { find_bar_->filter(); }, has_table);
  commands_.add(
      "notes.add", "Edit", "Add a note here…", QKeySequence("N"),
      [this] {
        const auto blank = notes_->blank();
        if (!blank)
          return;
        const EditedNote edited = edit_note(*blank, true, this);
        if (edited.what != EditedNote::What::Saved)
          return;
        std::vector<Note> notes = notes_->notes();
        notes.push_back(edited.note);
        keep_notes(std::move(notes));
      },
      has_table);
  make_run_commands();
  make_help_commands();
}

// ---- files

void MainWindow::make_file_commands() {
  commands_.add(
      "file.reload", "File", "Open again", QKeySequence::Refresh,
      [this] { open(workspace_.document().path); },
      [this] { return workspace_.document().kind != Document::Kind::Nothing; });
  commands_.add(
      "file.compare", "File", "Compare with another file…", QKeySequence("Ctrl+Shift+K"),
      [this] {
        const QString path = QFileDialog::getOpenFileName(this, "Compare with");
        if (!path.isEmpty())
          attempt([&] { workspace_.compare_with(path.toStdString()); });
      },
      [this] { return workspace_.front() != nullptr; });
  commands_.add(
      "file.save_picture", "File", "Save picture…", QKeySequence("Ctrl+E"),
      [this] {
        const QString path = QFileDialog::getSaveFileName(
            this, "Save picture", shown_path(workspace_.document().path.stem()) + ".svg",
            "Pictures (*.svg *.pdf *.png)");
        if (path.isEmpty())
          return;
        attempt([&] {
          save_picture(picture_of(workspace_), path.toStdString());
          say(path + " was written");
        });
      },
      [this] { return workspace_.front() != nullptr; });
}

void MainWindow::make_recent_menu() {
  for (QAction* top : menuBar()->actions())
    if (top->menu() != nullptr && top->text() == "File") {
      recent_menu_ = new QMenu("Open recent", this);
      top->menu()->insertMenu(commands_.find("file.reload"), recent_menu_);
      // Quit stays last, whatever is added after it.
      top->menu()->removeAction(commands_.find("file.quit"));
      top->menu()->addSeparator();
      top->menu()->addAction(commands_.find("file.quit"));
      connect(recent_menu_, &QMenu::aboutToShow, this, [this] {
        recent_menu_->clear();
        const QStringList recent = remembered_ ? remembered_->recent() : QStringList();
        for (const QString& path : recent)
          recent_menu_->addAction(path, this, [this, path] { open(path.toStdString()); });
        if (recent.isEmpty())
          recent_menu_->addAction("nothing yet")->setEnabled(false);
      });
    }
}

void MainWindow::keep_recent(const std::filesystem::path& path) {
  std::error_code failure;
  if (remembered_ && workspace_.document().kind != Document::Kind::Nothing)
    remembered_->keep_recent(
        shown_path(std::filesystem::absolute(path, failure).lexically_normal()));
}

bool MainWindow::open_example() {
  const auto example = find_example(QApplication::applicationDirPath().toStdString());
  if (!example)
    return false;
  workspace_.open(*example);
  if (remembered_ && !remembered_->has_seen_tour()) {
    remembered_->keep_seen_tour();
    // The window has its size only when it is shown.
    QTimer::singleShot(0, this, [this] { tour_->begin(); });
  }
  return true;
}

// ---- persistent settings

void MainWindow::remember_in(const QString& file) {
  remembered_ = std::make_unique<WindowSettings>(file);
  if (const auto geometry = remembered_->geometry())
    restoreGeometry(*geometry);
  if (const auto docks = remembered_->docks())
    restoreState(*docks);
  if (const auto dark = remembered_->dark())
    set_dark(*dark);
  connect(commands_.find("view.dark"), &QAction::triggered, this,
          [this] { remembered_->keep_dark(theme_->dark); });
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (run_control_.is_running() &&
      QMessageBox::question(this, "Pipewright", "A training is running. Stop it and close?",
                            QMessageBox::Yes | QMessageBox::Cancel,
                            QMessageBox::Cancel) != QMessageBox::Yes) {
    event->ignore();
    return;
  }
  if (remembered_)
    remembered_->keep(saveGeometry(), saveState());
  event->accept();
}

void MainWindow::theme_services() {
  notes_->set_theme(*theme_);
  palette_->set_theme(*theme_);
  tour_->set_theme(*theme_);
}

void MainWindow::refresh_services(Workspace::Change change) {
  if (change == Workspace::Change::Tables)
    find_bar_->forget();
  if (change != Workspace::Change::Document)
    return;
  std::vector<std::string> problems;
  notes_->set_notes(read_notes(notes_file(workspace_.document().path), problems));
  if (!problems.empty())
    say(QString::fromStdString(problems.front()));
}

// ---- runs

void MainWindow::make_run_commands() {
  const auto can_start = [this] {
    return workspace_.answer() != nullptr && !run_control_.is_running();
  };
  commands_.add(
      "run.start", "Run", "Run this plan", QKeySequence("F9"),
      [this] { start_run(RunRequest::What::Run); }, can_start);
  commands_.add(
      "run.train", "Run", "Train with this plan, with checkpoints", QKeySequence("Shift+F9"),
      [this] { start_run(RunRequest::What::Train); }, can_start);
  commands_.add(
      "run.stop", "Run", "Stop", QKeySequence("Ctrl+F9"), [this] { run_control_.stop(); },
      [this] { return run_control_.is_running(); });
  commands_.add(
      "run.resume", "Run", "Resume from the last checkpoint", {}, [this] { run_control_.resume(); },
      [this] { return run_control_.can_resume(); });
  commands_.add(
      "run.open", "Run", "Show the files of the run", {},
      [this] { open(run_control_.watch()->folder()); },
      [this] { return run_control_.watch() != nullptr; });
}

void MainWindow::start_run(RunRequest::What what) {
  if (workspace_.answer() == nullptr)
    return;
  attempt([&] {
    run_draft_ = workspace_.draft();
    timelines_seen_ = 0;
    run_control_.start(
        prepared(what, workspace_.draft(), workspace_.answer()->plan, runs_folder()));
    show_view("training");
  });
}

void MainWindow::follow_run() {
  const RunWatch* watch = run_control_.watch();
  if (watch == nullptr || !run_control_.is_followed())
    return;
  const bool ended = run_control_.phase() == RunControl::Phase::Ended;
  if (watch->timelines() <= timelines_seen_ && !(ended && timelines_seen_ >= 0))
    return;
  // A draft that the user has changed meanwhile is kept.
  const bool is_there = workspace_.document().path == watch->folder();
  const bool untouched =
      is_there ? !workspace_.changed()
               : run_draft_ && workspace_.has_plan() && workspace_.draft() == *run_draft_;
  if (!untouched)
    return;
  timelines_seen_ = ended ? -1 : watch->timelines();
  workspace_.take(open_document(watch->folder()));
}

// ---- notes

void MainWindow::edit_note_at(std::size_t note) {
  std::vector<Note> notes = notes_->notes();
  const EditedNote edited = edit_note(notes[note], false, this);
  switch (edited.what) {
    case EditedNote::What::Kept:
      return;
    case EditedNote::What::Saved:
      notes[note] = edited.note;
      break;
    case EditedNote::What::Deleted:
      notes.erase(notes.begin() + static_cast<std::ptrdiff_t>(note));
      break;
  }
  keep_notes(std::move(notes));
}

void MainWindow::keep_notes(std::vector<Note> notes) {
  attempt([&] { write_notes(notes_file(workspace_.document().path), notes); });
  notes_->set_notes(std::move(notes));
}

// ---- palette and help

std::vector<PaletteEntry> MainWindow::palette_entries(const QString& typed) {
  std::vector<PaletteEntry> entries;
  const std::string action = typed.trimmed().toUpper().toStdString();
  if (workspace_.front() && plan::parse_instruction(action))
    entries.push_back({"Find action " + QString::fromStdString(action), "next and previous: F3",
                       [this, action] { find_bar_->find(QString::fromStdString(action)); }, true});
  for (const Command& command : commands_.all()) {
    QAction* const run = command.action;
    if (run->isEnabled() && command.id != "help.palette")
      entries.push_back({run->text(), run->shortcut().toString(QKeySequence::NativeText),
                         [run] { run->trigger(); }});
  }
  if (workspace_.front()) {
    const plan::EventTable& table = workspace_.front()->table();
    const auto go = [&](int rank) {
      entries.push_back({"Go to " + QString::fromStdString(plan::rank_name(table, rank)), "row",
                         [this, rank] { go_to_rank(*timeline_, rank); }});
    };
    for (int rank = 0; rank < std::min(table.ranks, most_ranks); ++rank)
      go(rank);
    bool is_number = false;
    const int asked = QString(typed).remove(QRegularExpression("\\D")).toInt(&is_number);
    if (is_number && asked >= most_ranks && asked < table.ranks)
      go(asked);
  }
  if (remembered_)
    for (const QString& path : remembered_->recent())
      entries.push_back({"Open " + path, "recent", [this, path] { open(path.toStdString()); }});
  return entries;
}

void MainWindow::make_tour() {
  tour_ = new Tour(
      {{timeline_, "A row per rank",
        "Colors show what a rank computes, and pale stretches idle time by cause. The wheel or W "
        "and S zoom, dragging in the ruler pans, F fits everything."},
       {tabs_, "Every bubble has a reason",
        "Click a pale stretch: this panel says what delayed the rank, and arrows show the chain of "
        "causes.",
        [this] { show_view("why"); }},
       {panel("what_if"), "What would happen if",
        "Other ranks, microbatches, schedules or links: each change is simulated at once and "
        "compared "
        "with the plan before. Undo reverts it.",
        [this] { show_view("what_if"); }},
       {tabs_, "Change the partition",
        "The layers and the stage boundaries: drag one and watch iteration time and memory.",
        [this] { show_view("partition"); }},
       {menuBar(), "Everything by keyboard",
        "Ctrl+Shift+P finds every command, every rank and every action. ? shows the keys. Now open "
        "a run of your own, or press F9 to run this plan where the model can be trained."}},
      this);
}

void MainWindow::make_help_commands() {
  commands_.add("help.palette", "Help", "Command palette…", QKeySequence("Ctrl+Shift+P"),
                [this] { palette_->open(); });
  commands_.add("help.keys", "Help", "Keys", QKeySequence("?"), [this] {
    if (QWidget* shown = findChild<QWidget*>("shortcuts")) {
      shown->close();
      return;
    }
    QWidget* sheet = make_shortcuts_sheet(commands_, this);
    sheet->setStyleSheet(
        QString("#shortcuts { background: %1; border: 1px solid %2; border-radius: 8px; }")
            .arg(theme_->panel.name(), theme_->line.name()));
    sheet->adjustSize();
    sheet->move((width() - sheet->width()) / 2, std::max(gap, (height() - sheet->height()) / 2));
    sheet->show();
    sheet->raise();
    sheet->setFocus();
  });
  commands_.add("help.tour", "Help", "A short tour", {}, [this] { tour_->begin(); });
  commands_.add("help.example", "Help", "Open the example", {}, [this] {
    if (!open_example())
      say("The example is not installed next to this program.");
  });
}

}  // namespace pipewright::gui
