#pragma once

// The window: the timeline first, everything else a click away.

#include <QDockWidget>
#include <QLabel>
#include <QMainWindow>
#include <QTabWidget>
#include <filesystem>

#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/gui/panels/figures_bar.hpp"
#include "pipewright/gui/panels/memory_view.hpp"
#include "pipewright/gui/panels/partition_strip.hpp"
#include "pipewright/gui/panels/problems_panel.hpp"
#include "pipewright/gui/panels/residual_panel.hpp"
#include "pipewright/gui/panels/savings_panel.hpp"
#include "pipewright/gui/panels/what_if_panel.hpp"
#include "pipewright/gui/panels/why_panel.hpp"
#include "pipewright/gui/timeline/timeline_view.hpp"
#include "pipewright/gui/window/commands.hpp"

namespace pipewright::gui {

class MainWindow : public QMainWindow {
 public:
  MainWindow();

  void open(const std::filesystem::path& path);
  /// Names of the views that `show_view` knows: "timeline", "why", "residuals", …
  static const std::vector<QString>& view_names();
  /// Brings one of them to the front; false where there is none of this name.
  bool show_view(const QString& name);
  void set_dark(bool dark);

  Workspace& workspace() { return workspace_; }
  TimelineView& timeline() { return *timeline_; }
  Commands& commands() { return commands_; }

 protected:
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  void make_panels();
  void make_commands();
  void make_menus();
  void refresh(Workspace::Change change);
  void follow_pick(const Picked& picked);

  Workspace workspace_;
  Commands commands_;
  const Theme* theme_;
  TimelineView* timeline_ = nullptr;
  FiguresBar* figures_ = nullptr;
  QTabWidget* tabs_ = nullptr;
  QDockWidget* details_ = nullptr;
  QDockWidget* what_if_dock_ = nullptr;
  WhatIfPanel* what_if_ = nullptr;
  WhyPanel* why_ = nullptr;
  ResidualPanel* residuals_ = nullptr;
  SavingsPanel* savings_ = nullptr;
  MemoryView* memory_ = nullptr;
  PartitionStrip* partition_ = nullptr;
  ProblemsPanel* problems_ = nullptr;
  QLabel* hover_ = nullptr;
};

}  // namespace pipewright::gui
