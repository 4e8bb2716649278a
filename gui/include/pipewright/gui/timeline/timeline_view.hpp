#pragma once

// The timeline: a minimap, a ruler and a row per rank. It paints its tables and reports the
// selection; it knows no files and no plans. The widget only forwards: TimelineModel holds the
// state, TimelineInput turns events into the commands below, and painters paint.

#include <QAbstractScrollArea>
#include <functional>

#include "pipewright/gui/timeline/rows_image.hpp"
#include "pipewright/gui/timeline/timeline_input.hpp"

namespace pipewright::gui {

class TimelineView : public QAbstractScrollArea {
 public:
  explicit TimelineView(QWidget* parent = nullptr);

  const TimelineModel& model() const { return model_; }
  const TimeScale& scale() const { return model_.layout.scale; }
  const std::shared_ptr<PaintedTable>& front() const { return model_.tables.front; }
  const RowsImage::Counts& painted() const { return image_.counts(); }

  /// Keeps the visible section if possible.
  void show_tables(std::shared_ptr<PaintedTable> front, std::shared_ptr<PaintedTable> ghost);
  void set_theme(const Theme& theme);
  /// Sets one of the switches, such as `&TimelineModel::heat`.
  void set(bool TimelineModel::*option, bool on);
  void set_rows(RowState state);
  void set_notes(RowNotes notes);

  void set_scale(TimeScale scale);
  void fit_all();
  /// Shows the selection; if the scale already fits it, shows everything.
  void fit();
  void show_time(double first, double last);

  void pick(Picked picked);
  /// Outlines the item under the mouse and reports it to `on_hover`.
  void hover(const Picked& under);
  /// Selects an event and centers it unless it is in view.
  void go_to(const PickedEvent& event);
  /// Selects the next or previous action of the same rank.
  void walk(int by);
  void set_arrows(std::vector<Arrow> arrows);
  /// Outlines events, such as a chain that delayed an action.
  void set_highlight(std::vector<std::uint64_t> events);
  /// Scrolls to a rank's row and marks it until something is selected.
  void show_row(int rank);
  /// Scrolls an item into view, and zooms in if it is too narrow to be seen.
  void reveal(const Picked& picked);

  QString empty_text;  // shown if there is no timeline
  std::function<void(const Picked&)> on_picked;
  std::function<void(const QString&)> on_hover;  // item under the mouse; empty: none
  std::function<void()> on_scale;                // the visible section has changed

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void scrollContentsBy(int dx, int dy) override;
  bool viewportEvent(QEvent* event) override;

 private:
  /// Lays out and repaints everything.
  void refresh();

  TimelineModel model_;
  RowsImage image_;
  TimelineInput input_{*this};
};

}  // namespace pipewright::gui
