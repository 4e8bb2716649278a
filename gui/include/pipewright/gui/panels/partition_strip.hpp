#pragma once

// The panel that shows the model as a strip of layers with their times and memory, and the stage
// boundaries, which can be dragged.

#include <QLabel>
#include <QPushButton>
#include <QSlider>
#include <optional>
#include <vector>

#include "pipewright/gui/panels/layer_strip.hpp"
#include "pipewright/gui/panels/panel.hpp"

namespace pipewright::gui {

class PartitionStrip : public Panel<> {
 public:
  /// `workspace` must outlive it.
  explicit PartitionStrip(Workspace& workspace, QWidget* parent = nullptr);
  void set_theme(const Theme& theme);
  QSize minimumSizeHint() const override { return {320, 190}; }

  const std::optional<LayerStrip>& strip() const { return strip_; }
  /// Returns the handle of the boundary between `stage` - 1 and `stage` (≥ 1): a slider whose value
  /// is the first layer of `stage`.
  QSlider* border(int stage) const { return borders_[static_cast<std::size_t>(stage) - 1]; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  bool event(QEvent* event) override;

 private:
  void rebuild() override;
  void place_borders();
  void move_border(int stage, int layer);
  void show_words();

  void paint_stages(QPainter& painter) const;
  std::string usual_kind() const;
  void paint_times(QPainter& painter) const;
  void paint_layer_name(QPainter& painter, int layer, const QRectF& box) const;
  void paint_memory(QPainter& painter) const;
  QString layer_words(int layer) const;
  QRectF time_rect() const;
  QRectF memory_rect() const;
  QColor rank_color(int rank) const;

  QLabel* summary_ = nullptr;
  QLabel* effect_ = nullptr;
  QPushButton* balance_ = nullptr;
  std::optional<LayerStrip> strip_;
  std::vector<double> places_;  // x where each layer begins and the last one ends, in pixels
  std::vector<QSlider*> borders_;
  int dragged_layer_ = -1;
};

}  // namespace pipewright::gui
