#pragma once

// A palette in which every command can be found by a few letters.

#include <QFrame>
#include <QLineEdit>
#include <QListWidget>
#include <functional>
#include <vector>

#include "pipewright/gui/look/theme.hpp"

namespace pipewright::gui {

struct PaletteEntry {
  QString text;    // "Undo"
  QString detail;  // "Ctrl+Z"
  std::function<void()> run;
  bool always = false;  // built from the typed text, so it always matches
};

/// Returns the matching entries, the best first; all in order if nothing was typed.
std::vector<PaletteEntry> fitting(const QString& typed, std::vector<PaletteEntry> entries);

class CommandPalette : public QFrame {
 public:
  /// `entries` is called for the current entries each time the text changes.
  CommandPalette(std::function<std::vector<PaletteEntry>(const QString&)> entries, QWidget* window);
  void set_theme(const Theme& theme);
  void open();

  QLineEdit& line() { return *line_; }
  QListWidget& list() { return *list_; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void fill();
  void choose();

  std::function<std::vector<PaletteEntry>(const QString&)> entries_;
  std::vector<PaletteEntry> shown_;
  const Theme* theme_;
  QLineEdit* line_;
  QListWidget* list_;
};

}  // namespace pipewright::gui
