#pragma once

// The timeline: a minimap, a ruler and a row per rank. It paints what it is given and says what was
// pointed at; it knows no files and no plans. The widget only forwards: TimelineModel holds what is
// shown, TimelineInput turns events into the commands below, painters paint.

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

  /// The section that is seen stays where it can.
  void show_tables(std::shared_ptr<PaintedTable> front, std::shared_ptr<PaintedTable> ghost);
  void set_theme(const Theme& theme);
  /// Sets one of the switches, such as `&TimelineModel::heat`.
  void set(bool TimelineModel::*option, bool on);
  void set_rows(RowState state);
  void set_notes(RowNotes notes);

  void set_scale(TimeScale scale);
  void fit_all();
  /// The selection; what is selected already fits: everything.
  void fit();
  void show_time(double first, double last);

  void pick(Picked picked);
  /// Outlines what is under the mouse and tells it to `on_hover`.
  void hover(const Picked& under);
  /// Picks an event and centres it unless it is in view.
  void go_to(const PickedEvent& event);
  /// Picks the next action of the same rank, or the one before.
  void walk(int by);
  void set_arrows(std::vector<Arrow> arrows);
  /// Outlines events, such as a chain that held something back.
  void set_highlight(std::vector<std::uint64_t> events);
  /// Scrolls to a rank's row and marks it, until something is picked.
  void show_row(int rank);
  /// Moves what was picked into sight, and nearer where it is too narrow to be seen.
  void reveal(const Picked& picked);

  QString empty_text;  // is written where there is nothing to show
  std::function<void(const Picked&)> on_picked;
  std::function<void(const QString&)> on_hover;  // what is under the mouse; empty: nothing
  std::function<void()> on_scale;                // the section that is seen has changed

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void scrollContentsBy(int dx, int dy) override;
  bool viewportEvent(QEvent* event) override;

 private:
  /// Lays everything out and paints it anew.
  void refresh();

  TimelineModel model_;
  RowsImage image_;
  TimelineInput input_{*this};
};

}  // namespace pipewright::gui
