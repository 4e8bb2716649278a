#pragma once

// The main window: the timeline, with panels around it.

#include <QDockWidget>
#include <QLabel>
#include <QMainWindow>
#include <QTabWidget>
#include <QVBoxLayout>
#include <filesystem>
#include <memory>

#include "pipewright/gui/document/run_control.hpp"
#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/gui/panels/panel_catalog.hpp"
#include "pipewright/gui/timeline/timeline_view.hpp"
#include "pipewright/gui/window/command_palette.hpp"
#include "pipewright/gui/window/commands.hpp"
#include "pipewright/gui/window/find_bar.hpp"
#include "pipewright/gui/window/notes_layer.hpp"
#include "pipewright/gui/window/tour.hpp"
#include "pipewright/gui/window/window_settings.hpp"

namespace pipewright::gui {

class MainWindow : public QMainWindow {
 public:
  MainWindow();

  void open(const std::filesystem::path& path);
  /// Names of the views that `show_view` accepts: "timeline", "why", "residuals", …
  static const std::vector<QString>& view_names();
  /// Brings a view to the front; returns false for an unknown name.
  bool show_view(const QString& name);
  /// Returns the widget of a panel; null for an unknown name.
  QWidget* panel(const QString& name) const;
  void set_dark(bool dark);

  /// Remembers geometry, open files and appearance in `file` from now on; empty: in the desktop's
  /// usual place. Without this call nothing is remembered.
  void remember_in(const QString& file);
  /// Opens the example scenario; returns false if it is not installed.
  bool open_example();
  /// Shows a message in the status bar for a while.
  void say(const QString& words);

  Workspace& workspace() { return workspace_; }
  const Workspace& workspace() const { return workspace_; }
  TimelineView& timeline() { return *timeline_; }
  Commands& commands() { return commands_; }
  RunControl& run_control() { return run_control_; }
  CommandPalette& palette() { return *palette_; }
  FindBar& find_bar() { return *find_bar_; }
  NotesLayer& notes() { return *notes_; }
  Tour& tour() { return *tour_; }

 protected:
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  void make_timeline();
  void make_docks();
  void make_panels();
  void add_panel(const PanelDescriptor& declared);
  void show_places(const Places& places);
  void tell_section();
  void make_commands();
  void make_open_commands();
  void make_plan_commands();
  void make_view_commands();
  void make_panel_commands();
  void make_menus();
  void refresh(Workspace::Change change);
  void follow_pick(const Picked& picked);
  void arrange_job();

  // Services other than panels (window_services.cpp).
  void make_services();
  void make_service_commands();
  void make_file_commands();
  void make_run_commands();
  void make_help_commands();
  void make_tour();
  void make_recent_menu();
  void theme_services();
  void refresh_services(Workspace::Change change);
  std::vector<PaletteEntry> palette_entries(const QString& typed);
  void keep_recent(const std::filesystem::path& path);
  void start_run(RunRequest::What what);
  void follow_run();
  void edit_note_at(std::size_t note);
  void keep_notes(std::vector<Note> notes);
  /// Runs `what` and shows errors in the status bar.
  void attempt(const std::function<void()>& what);

  Workspace workspace_;
  Commands commands_;
  const Theme* theme_;
  TimelineView* timeline_ = nullptr;
  RunControl run_control_;
  PanelHost host_;
  std::vector<PanelHost::Section> section_observers_;
  struct Shown {
    PanelDescriptor declared;
    MadePanel made;
    QDockWidget* dock;  // null: it is always visible
  };
  std::vector<Shown> panels_;
  QVBoxLayout* center_ = nullptr;  // the area above the timeline, the timeline, and the area below
  QTabWidget* tabs_ = nullptr;
  QDockWidget* details_ = nullptr;
  QLabel* hover_ = nullptr;

  FindBar* find_bar_ = nullptr;
  NotesLayer* notes_ = nullptr;
  CommandPalette* palette_ = nullptr;
  Tour* tour_ = nullptr;
  QMenu* recent_menu_ = nullptr;
  std::unique_ptr<WindowSettings> remembered_;
  std::optional<search::Draft> run_draft_;  // the draft that was started
  int timelines_seen_ = 0;
  bool arranged_ = false;  // the rows of a whole job
};

}  // namespace pipewright::gui
