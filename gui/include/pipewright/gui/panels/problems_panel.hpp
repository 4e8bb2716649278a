#pragma once

// Reading errors with file, position and reason, and the assumptions that were made.

#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QWidget>

#include "pipewright/gui/document/workspace.hpp"
#include "pipewright/gui/look/theme.hpp"

namespace pipewright::gui {

class ProblemsPanel : public QWidget {
 public:
  /// `workspace` must outlive it.
  explicit ProblemsPanel(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

  /// Returns the selected lines, or all, as text for the clipboard.
  QString text() const;

 private:
  void refresh(Workspace::Change change);
  void fill();

  Workspace& workspace_;
  const Theme* theme_;
  QLabel* heading_ = nullptr;
  QPushButton* copy_ = nullptr;
  QListWidget* list_ = nullptr;
};

}  // namespace pipewright::gui
