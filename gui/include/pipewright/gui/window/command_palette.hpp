#pragma once

// Everything that can be done, found by a few letters.

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
  bool always = false;  // made from what was typed: it fits in any case
};

/// Those that fit, the best first; all in their order where nothing was typed.
std::vector<PaletteEntry> fitting(const QString& typed, std::vector<PaletteEntry> entries);

class CommandPalette : public QFrame {
 public:
  /// `entries` is asked for what there is each time something is typed.
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
