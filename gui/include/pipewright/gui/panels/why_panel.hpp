#pragma once

// Explains the selection in sentences: an action, a bubble and its cause, or an area with a table
// per rank.

#include <QLabel>
#include <QStackedWidget>

#include "pipewright/gui/document/why.hpp"
#include "pipewright/gui/panels/figure_table.hpp"
#include "pipewright/gui/panels/panel.hpp"
#include "pipewright/gui/panels/share_bar.hpp"

namespace pipewright::gui {

/// Returns a sentence such as "Most of the 96.20 ms that ranks stand idle is warm-up: the pipeline
/// fills …"
QString step_sentence(const PaintedTable& table);
/// Returns, per rank and in total: compute, idle time by cause, transfers and memory.
FigureTable area_table(const PaintedTable& table, const PickedArea& area);

class WhyPanel : public Panel<> {
 public:
  /// `workspace` must outlive it.
  explicit WhyPanel(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);

  /// Returns its text without markup.
  QString spoken() const;
  const FigureTableView& table() const { return *table_; }

 private:
  QWidget* make_words();
  QWidget* make_area();
  void rebuild() override;
  void show_picked();
  void follow(const QString& link);
  QString html_of_nothing() const;
  QString html_of(const PickedEvent& picked) const;
  QString html_of(const PickedIdle& picked) const;

  QStackedWidget* pages_;
  QLabel* words_;
  ShareBar* of_rank_;
  ShareBar* of_all_;
  QLabel* area_title_;
  FigureTableView* table_;
};

}  // namespace pipewright::gui
