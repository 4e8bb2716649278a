#pragma once

// The timeline: a minimap, a ruler and a row per rank. It paints what it is given and says what was
// pointed at; it knows no files and no plans.

#include <QAbstractScrollArea>
#include <QImage>
#include <QPainterPath>
#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "pipewright/gui/look/theme.hpp"
#include "pipewright/gui/timeline/legend.hpp"
#include "pipewright/gui/timeline/painted_table.hpp"
#include "pipewright/gui/timeline/picked.hpp"
#include "pipewright/gui/timeline/row_layout.hpp"
#include "pipewright/gui/timeline/row_raster.hpp"
#include "pipewright/gui/timeline/time_scale.hpp"

namespace pipewright::gui {

/// An arrow from the end of one event of the front table to the start of another.
struct Arrow {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};

class TimelineView : public QAbstractScrollArea {
 public:
  explicit TimelineView(QWidget* parent = nullptr);

  /// `front` is what is looked at; `ghost` is drawn above each of its rows, such as what was
  /// predicted. Either may be null. The section that is seen stays where it can.
  void show_tables(std::shared_ptr<PaintedTable> front, std::shared_ptr<PaintedTable> ghost);
  const std::shared_ptr<PaintedTable>& front() const { return front_; }
  const std::shared_ptr<PaintedTable>& ghost() const { return ghost_; }

  void set_theme(const Theme& theme);
  /// Classes are differences from the prediction instead of kinds.
  void set_heat(bool heat);
  /// Both tables over each other in one row, half of each, instead of the ghost above.
  void set_overlaid(bool overlaid);
  /// What is written where there is nothing to show.
  void set_empty_text(const QString& text);

  const TimeScale& scale() const { return scale_; }
  void set_scale(TimeScale scale);
  void fit_all();
  /// The selection; what is selected already fits: everything.
  void fit();
  void show_time(double first, double last);

  const RowState& rows() const { return state_; }
  void set_rows(RowState state);
  void set_notes(RowNotes notes);

  /// What the last picture of the rows was made of: what is out of sight costs nothing.
  struct Painted {
    std::size_t rows = 0, headings = 0, labels = 0;
  };
  Painted painted() const { return painted_; }

  const Picked& picked() const { return picked_; }
  void pick(Picked picked);
  /// Picks the next action of the same rank, or the one before.
  void walk(int by);

  /// Scrolls to a rank's row and marks it, until something is picked.
  void show_row(int rank);
  /// Moves what was picked into sight, and nearer where it is too narrow to be seen.
  void reveal(const Picked& picked);

  void set_arrows(std::vector<Arrow> arrows);
  /// Events that are outlined, such as a chain that held something back, or the critical path.
  void set_highlight(std::vector<std::uint64_t> events);
  void set_show_critical(bool show);

  std::function<void(const Picked&)> on_picked;
  std::function<void(const QString&)> on_hover;  // what is under the mouse; empty: nothing
  std::function<void()> on_scale;                // the section that is seen has changed

  /// Where an event is painted in the viewport; empty: it is not.
  QRectF rect_of(std::uint64_t event) const;
  QRectF row_rect(int rank) const;
  double plot_left() const { return header_width_; }
  double plot_width() const;
  const RowLayout& layout_of_rows() const { return layout_; }

  /// The name, times and kind of an event, for people.
  QString describe(const PickedEvent& picked) const;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void scrollContentsBy(int dx, int dy) override;
  bool viewportEvent(QEvent* event) override;

 private:
  static constexpr double least_header = 116, most_header = 380;
  static constexpr double beside_name = 66;  // pixels of a header: margins and the busy time
  static constexpr double busy_width = 56;
  double header_width_ = least_header;  // as wide as the rows' names
  double note_width_ = 0;               // of it, for their notes
  static constexpr double minimap_height = 44;
  static constexpr double ruler_height = 24;
  static constexpr double rows_top = minimap_height + ruler_height;
  static constexpr double legend_height = 26;

  enum class Drag { None, Area, Pan, Map, Row };

  /// What is within a row, from its top.
  struct RowParts {
    double ghost_top = 0, ghost_height = 0;
    double front_top = 0, front_height = 0;
  };
  RowParts parts_of(const PlacedRow& row) const;
  double rows_bottom() const;  // where the legend begins

  void lay_out();
  void fit_header();
  void changed();                            // all is painted anew
  double row_y(const PlacedRow& row) const;  // on the viewport
  double scrolled_top() const;               // where rows that are not pinned begin to be seen
  std::span<const PlacedRow> pinned_rows() const;
  std::span<const PlacedRow> scrolled_rows() const;  // those of the others that are in sight
  std::vector<const PlacedHeading*> headings_in_sight() const;
  const PlacedRow* row_at(double y) const;
  std::optional<PickedEvent> event_under(const PlacedRow& row, QPointF at) const;
  Picked pick_at(QPointF at) const;
  double snapped(QPointF at) const;
  void zoom(double factor, double x);
  void pan(double pixels);
  void select_area();
  void hover();

  void render();
  void find_legend();
  std::vector<LegendEntry> legend_entries() const;
  void render_row(const PlacedRow& row, double scale);
  void render_overlaid(const PlacedRow& row, double scale);
  void render_table(const PaintedTable& table, const PlacedRow& row, double top, double height,
                    bool ghost, double scale);
  void render_map(double scale);
  void paint_labels(QPainter& painter) const;
  void paint_headers(QPainter& painter) const;
  void paint_header(QPainter& painter, const PlacedRow& row) const;
  void paint_headings(QPainter& painter) const;
  void paint_column_titles(QPainter& painter) const;
  void paint_ruler(QPainter& painter) const;
  void paint_legend(QPainter& painter) const;
  void paint_hovered(QPainter& painter) const;
  void paint_map_frame(QPainter& painter) const;
  std::vector<double> lines_under_compute() const;
  QPainterPath critical_line() const;
  void paint_critical(QPainter& painter) const;
  void paint_picked(QPainter& painter) const;
  void paint_arrows(QPainter& painter) const;
  void paint_area(QPainter& painter) const;
  ClassColours colours_for(plan::Row row, bool ghost) const;

  std::shared_ptr<PaintedTable> front_, ghost_;
  const Theme* theme_;
  bool heat_ = false;
  bool overlaid_ = false;
  bool show_critical_ = true;
  QString empty_text_;
  TimeScale scale_;
  RowState state_;
  RowNotes notes_;
  RowLayout layout_;
  Painted painted_;
  Picked picked_;
  std::vector<Arrow> arrows_;
  std::vector<std::uint64_t> highlight_;
  Picked hovered_;
  int marked_ = -1;  // the rank whose row is marked; -1: none
  PlacedLegend legend_;
  /// Whether the timeline has any event of each kind, cause and row.
  std::array<char, class_count> has_kind_{}, has_cause_{};
  std::array<char, 4> has_row_{};

  struct Label {
    QRectF box;
    std::uint64_t event = 0;
    bool ghost = false;
    QRgb fill = 0;
  };
  RowRaster raster_;
  QImage image_;
  QImage map_;
  std::vector<Label> labels_;
  std::mutex labels_mutex_;
  bool dirty_ = true;
  bool map_dirty_ = true;

  Drag drag_ = Drag::None;
  QPointF drag_from_, mouse_;
  double drag_time_ = 0;
  int drag_rank_ = 0;
  bool moved_ = false;
};

}  // namespace pipewright::gui
