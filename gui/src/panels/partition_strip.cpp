#include "pipewright/gui/panels/partition_strip.hpp"

#include <QHBoxLayout>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <QVBoxLayout>
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include "catalog.hpp"
#include "pipewright/gui/look/labels.hpp"
#include "pipewright/gui/look/words.hpp"
#include "pipewright/gui/panels/plan_fields.hpp"
#include "pipewright/gui/timeline/row_raster.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::gui {
namespace {

constexpr double names_width = 100;  // left of the strips, so that they begin where the timeline's
                                     // rows do
constexpr double head_height = 46;   // the line above with text and a button
constexpr double stage_height = 38;  // two lines for each stage
constexpr double most_time_height = 64;
constexpr double least_layer = 5;
constexpr double narrowest_name = 20;
constexpr int widest_border = 13;

/// A boundary between two stages, whose value is the first layer after it. Being a slider, it has a
/// slider's keys and accessibility; only position and appearance differ.
class BoundarySlider : public QSlider {
 public:
  BoundarySlider(QWidget* parent, const Theme* const& theme)
      : QSlider(Qt::Horizontal, parent), theme_(theme) {
    setFocusPolicy(Qt::StrongFocus);
    setCursor(Qt::SizeHorCursor);
    setPageStep(4);
    setMouseTracking(true);
  }

  std::function<void(double x)> on_drag;  // in the parent's pixels
  std::function<void()> on_settled;

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const bool active = hasFocus() || underMouse() || isSliderDown();
    const QColor color = active ? theme_->accent : theme_->text;
    const double middle = width() / 2.0;
    painter.fillRect(QRectF(middle - 1, 0, 2, height()), color);
    const double grip = std::min(9.0, width() - 2.0);
    if (grip < 4)
      return;
    const QRectF box(middle - grip / 2, height() / 2.0 - 12, grip, 24);
    painter.setPen(QPen(theme_->panel, 1.5));
    painter.setBrush(color);
    painter.drawRoundedRect(box, grip / 2, grip / 2);
    if (hasFocus()) {
      painter.setPen(QPen(theme_->selection, 2));
      painter.setBrush(Qt::NoBrush);
      painter.drawRoundedRect(box.adjusted(-1, -1, 1, 1), grip / 2 + 1, grip / 2 + 1);
    }
  }
  void enterEvent(QEnterEvent*) override { update(); }
  void leaveEvent(QEvent*) override { update(); }
  void mousePressEvent(QMouseEvent* event) override {
    if (event->button() != Qt::LeftButton)
      return;
    setFocus(Qt::MouseFocusReason);
    setSliderDown(true);
    update();
  }
  void mouseMoveEvent(QMouseEvent* event) override {
    if (isSliderDown() && on_drag)
      on_drag(mapToParent(event->position().toPoint()).x());
  }
  void mouseReleaseEvent(QMouseEvent*) override {
    setSliderDown(false);
    update();
    if (on_settled)
      on_settled();
  }
  void keyReleaseEvent(QKeyEvent* event) override {
    QSlider::keyReleaseEvent(event);
    if (!event->isAutoRepeat() && on_settled)
      on_settled();
  }
  void wheelEvent(QWheelEvent* event) override { event->ignore(); }

 private:
  const Theme* const& theme_;  // the strip's theme, which may change
};

}  // namespace

PartitionStrip::PartitionStrip(Workspace& workspace, QWidget* parent)
    : Panel(workspace, {Workspace::Change::Plan, Workspace::Change::Document}, parent) {
  setMouseTracking(true);
  setAccessibleName("Partition");
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(2 * gap, gap, 2 * gap, 0);
  auto* head = new QHBoxLayout;
  head->setSpacing(3 * gap);
  summary_ = new QLabel;
  summary_->setFont(font_of(text_size));
  effect_ = new QLabel;
  effect_->setFont(font_of(text_size, true));
  effect_->setAccessibleName("What the partition gives");
  balance_ = new QPushButton("Balance by time");
  balance_->setObjectName("partition.balance");
  balance_->setFont(font_of(text_size));
  balance_->setToolTip("Give the stages as equal times as the layers allow.");
  connect(balance_, &QPushButton::clicked, this, [this] {
    workspace_.set("pipeline.partition=profile");
    workspace_.settle();
  });
  head->addWidget(summary_);
  head->addStretch(1);
  head->addWidget(effect_);
  head->addWidget(balance_);
  column->addLayout(head);
  column->addStretch(1);
  show_words();
}

void PartitionStrip::set_theme(const Theme& theme) {
  theme_ = &theme;
  show_words();
  update();
}

void PartitionStrip::rebuild() {
  strip_ = strip_of(workspace_);
  const std::size_t wanted = strip_ ? strip_->stages.size() - 1 : 0;
  while (borders_.size() > wanted) {
    // It may be the one being dragged, or have the focus, so it cannot be deleted at once.
    borders_.back()->hide();
    borders_.back()->deleteLater();
    borders_.pop_back();
  }
  while (borders_.size() < wanted) {
    const int stage = static_cast<int>(borders_.size()) + 1;
    auto* border = new BoundarySlider(this, theme_);
    border->setObjectName(QString("partition.border.%1").arg(stage));
    connect(border, &QSlider::valueChanged, this,
            [this, stage](int layer) { move_border(stage, layer); });
    border->on_drag = [this, border](double x) {
      border->setValue(
          nearest_layer(places_, x - time_rect().left(), border->minimum(), border->maximum()));
    };
    border->on_settled = [this] { workspace_.settle(); };
    borders_.push_back(border);
    border->show();
  }
  place_borders();
  show_words();
  update();
}

void PartitionStrip::place_borders() {
  places_.clear();
  if (!strip_)
    return;
  const QRectF times = time_rect();
  places_ = layer_places(strip_->layers, times.width(), least_layer);
  double narrowest = times.width();
  for (const StripStage& stage : strip_->stages)
    narrowest = std::min(narrowest, places_[static_cast<std::size_t>(stage.last)] -
                                        places_[static_cast<std::size_t>(stage.first)]);
  const int width = std::clamp(static_cast<int>(narrowest / 3), 5, widest_border) | 1;
  for (std::size_t i = 0; i < borders_.size(); ++i) {
    QSlider* border = borders_[i];
    const auto& boundaries = strip_->boundaries;
    const int layer = boundaries[i + 1];
    const QSignalBlocker blocker(border);
    border->setRange(boundaries[i] + 1, boundaries[i + 2] - 1);
    border->setValue(layer);
    const QString& before =
        QString::fromStdString(strip_->layers[static_cast<std::size_t>(layer)].name);
    border->setAccessibleName(
        QString("Boundary of stages %1 and %2, before %3").arg(i).arg(i + 1).arg(before));
    border->setToolTip(QString("Boundary of stages %1 and %2. Drag it, or move it with the arrow "
                               "keys; Tab goes to the next.")
                           .arg(i)
                           .arg(i + 1));
    const double x = times.left() + places_[static_cast<std::size_t>(layer)];
    border->setGeometry(static_cast<int>(std::lround(x)) - width / 2,
                        static_cast<int>(times.top()) - 5, width,
                        static_cast<int>(times.height()) + 10);
  }
}

void PartitionStrip::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  place_borders();
}

void PartitionStrip::move_border(int stage, int layer) {
  try {
    workspace_.move_boundary(stage, layer);
  } catch (const plan::InputError& error) {
    place_borders();
    QToolTip::showText(QCursor::pos(), plain_words(error), this);
  }
}

void PartitionStrip::show_words() {
  set_color(summary_, theme_->soft_text);
  const bool refused = strip_ && workspace_.answer() == nullptr;
  set_color(effect_, refused ? theme_->warning : theme_->text);
  summary_->setVisible(strip_.has_value());
  effect_->setVisible(strip_.has_value());
  balance_->setVisible(strip_.has_value());
  if (!strip_)
    return;
  const auto& choice = workspace_.draft().scenario.pipeline.partition;
  const auto* method = std::get_if<std::string>(&choice);
  summary_->setText(QString("%1 in %2, %3.  Drag a boundary, or a layer to the adjacent stage.")
                        .arg(counted(strip_->layers.size(), "layer", "layers"),
                             counted(strip_->stages.size(), "stage", "stages"),
                             method == nullptr         ? "chosen by hand"
                             : *method == "profile"    ? "balanced by time"
                             : *method == "parameters" ? "balanced by parameters"
                             : *method == "uniform"
                                 ? "the same number in each"
                                 : "balanced by " + QString::fromStdString(*method)));
  balance_->setEnabled(method == nullptr || *method != "profile");
  const search::Answer* answer = workspace_.answer();
  if (answer == nullptr) {
    effect_->setText("not possible");
    return;
  }
  const search::Figures& figures = answer->figures;
  effect_->setText(
      QString("%1    bubble %2    peak %3")
          .arg(time_words(figures.iteration_s),
               percent_words(figures.iteration_s > 0 ? figures.bubble_s / figures.iteration_s : 0),
               byte_words(static_cast<double>(figures.peak.value))));
}

QRectF PartitionStrip::time_rect() const {
  const double room = height() - head_height - stage_height - 2 * gap;
  return {2 * gap + names_width, head_height + stage_height,
          std::max(40.0, width() - 4 * gap - names_width),
          std::clamp(room * 0.45, 24.0, most_time_height)};
}

QRectF PartitionStrip::memory_rect() const {
  const QRectF times = time_rect();
  const double top = times.bottom() + gap + 4;
  return {times.left(), top, times.width(), std::max(16.0, height() - top - gap - 6)};
}

QColor PartitionStrip::rank_color(int rank) const {
  // Okabe and Ito's colors, in an order in which neighbors differ.
  static const std::array<QColor, 7> colors{QColor("#0072b2"), QColor("#e69f00"), QColor("#009e73"),
                                            QColor("#cc79a7"), QColor("#56b4e9"), QColor("#d55e00"),
                                            QColor("#e6c700")};
  const QColor& color = colors[static_cast<std::size_t>(std::max(0, rank)) % colors.size()];
  return QColor::fromRgb(mixed(color.rgb(), theme_->panel.rgb(), theme_->dark ? 0.52 : 0.58));
}

void PartitionStrip::paint_stages(QPainter& painter) const {
  const QRectF times = time_rect();
  for (std::size_t s = 0; s < strip_->stages.size(); ++s) {
    const StripStage& stage = strip_->stages[s];
    const double left = times.left() + places_[static_cast<std::size_t>(stage.first)];
    const double right = times.left() + places_[static_cast<std::size_t>(stage.last)];
    const double margin = right - left < 60 ? 2 : 5;
    const double room = right - left - 2 * margin;
    const QRectF name(left + margin, times.top() - stage_height, room, 17);
    const QRectF time(left + margin, times.top() - stage_height + 16, room, 16);
    const auto fitting = [&](const QStringList& candidates) {
      for (const QString& text : candidates)
        if (painter.fontMetrics().horizontalAdvance(text) <= room)
          return text;
      return QString();
    };
    painter.setFont(font_of(text_size, true));
    painter.setPen(theme_->text);
    const QString number = QString::number(s), rank = QString::number(stage.rank);
    painter.drawText(name, Qt::AlignLeft | Qt::AlignVCenter,
                     fitting({"stage " + number + " · rank " + rank, "stage " + number, number}));
    painter.setFont(font_of(small_size, stage.slowest));
    painter.setPen(stage.slowest ? theme_->warning : theme_->soft_text);
    const QString takes = time_words(stage.time_s);
    const QString holds = byte_words(stage.standing) + " + " + byte_words(stage.activation);
    QStringList words{takes + "  ·  " + holds + " a microbatch", takes + "  ·  " + holds, takes,
                      takes.section(' ', 0, 0)};
    if (stage.slowest)
      words = QStringList{takes + "  slowest  ·  " + holds + " a microbatch",
                          takes + "  slowest  ·  " + holds, takes + "  slowest", takes,
                          takes.section(' ', 0, 0)};
    painter.drawText(time, Qt::AlignLeft | Qt::AlignVCenter, fitting(words));
    if (stage.slowest)
      painter.fillRect(QRectF(left + 1, times.top() - 4, right - left - 2, 3), theme_->warning);
  }
}

/// Returns the kind of most layers, which needs no mark.
std::string PartitionStrip::usual_kind() const {
  std::map<std::string, int> kinds;
  for (const StripLayer& layer : strip_->layers)
    ++kinds[layer.kind];
  return std::max_element(kinds.begin(), kinds.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

void PartitionStrip::paint_times(QPainter& painter) const {
  const QRectF times = time_rect();
  const std::string usual = usual_kind();
  painter.setFont(font_of(small_size));
  for (const StripStage& stage : strip_->stages) {
    const QColor fill = rank_color(stage.rank);
    for (int at = stage.first; at < stage.last; ++at) {
      const auto i = static_cast<std::size_t>(at);
      const QRectF box(times.left() + places_[i], times.top(), places_[i + 1] - places_[i] - 1,
                       times.height());
      painter.fillRect(box, fill);
      if (strip_->layers[i].kind != usual) {
        QColor mark = theme_->text;
        mark.setAlphaF(0.16F);
        painter.fillRect(box, QBrush(mark, Qt::BDiagPattern));
      }
      if (at == dragged_layer_) {
        painter.setPen(QPen(theme_->selection, 2));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(box.adjusted(1, 1, -1, -1));
      }
      paint_layer_name(painter, at, box);
    }
  }
}

/// Paints the layer's name and time if there is room, otherwise its number.
void PartitionStrip::paint_layer_name(QPainter& painter, int at, const QRectF& box) const {
  if (box.width() < narrowest_name)
    return;
  const StripLayer& layer = strip_->layers[static_cast<std::size_t>(at)];
  const QString name = QString::fromStdString(layer.name);
  QString shown = name;
  if (painter.fontMetrics().horizontalAdvance(name) + 16 > box.width())
    shown = QString::number(at);
  if (painter.fontMetrics().horizontalAdvance(shown) + 4 > box.width())
    return;
  painter.setPen(theme_->text);
  const bool two_lines = shown == name && box.height() > 40 && box.width() > 60;
  painter.drawText(box.adjusted(0, two_lines ? -14 : 0, 0, 0), Qt::AlignCenter, shown);
  if (!two_lines)
    return;
  QColor soft = theme_->text;
  soft.setAlphaF(0.7F);
  painter.setPen(soft);
  painter.drawText(box.adjusted(0, 16, 0, 0), Qt::AlignCenter, time_words(layer.time_s));
}

void PartitionStrip::paint_memory(QPainter& painter) const {
  const QRectF room = memory_rect();
  double most = 1;
  for (const StripLayer& layer : strip_->layers)
    most = std::max(most, layer.standing + layer.activation);
  painter.fillRect(QRectF(room.left(), room.bottom(), room.width(), 1), theme_->line);
  for (std::size_t i = 0; i < strip_->layers.size(); ++i) {
    const StripLayer& layer = strip_->layers[i];
    const double left = room.left() + places_[i], width = places_[i + 1] - places_[i] - 1;
    const double standing = layer.standing / most * room.height();
    const double activation = layer.activation / most * room.height();
    painter.fillRect(QRectF(left, room.bottom() - standing, width, standing), theme_->owners[1]);
    painter.fillRect(QRectF(left, room.bottom() - standing - activation, width, activation),
                     theme_->owners[4]);
  }
}

void PartitionStrip::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), theme_->panel);
  if (!strip_) {
    painter.setPen(theme_->soft_text);
    painter.setFont(font_of(text_size));
    painter.drawText(
        rect().adjusted(2 * gap, gap, -2 * gap, -gap), Qt::AlignCenter | Qt::TextWordWrap,
        workspace_.has_plan()
            ? "The plan has no stages: the reason is shown above."
            : "Open a scenario or a run to see its layers and move the boundaries of its "
              "stages.");
    return;
  }
  const QRectF times = time_rect(), memory = memory_rect();
  paint_stages(painter);
  paint_times(painter);
  paint_memory(painter);
  painter.setFont(font_of(small_size));
  const double names = names_width - gap;
  painter.setPen(theme_->soft_text);
  painter.drawText(QRectF(2 * gap, times.top(), names, times.height()),
                   Qt::AlignLeft | Qt::AlignVCenter, "time of a\nmicrobatch");
  const auto legend = [&](double y, const QColor& fill, const char* words) {
    painter.fillRect(QRectF(2 * gap, y + 3, 9, 9), fill);
    painter.drawText(QRectF(2 * gap + 15, y, names - 15, 15), Qt::AlignLeft | Qt::AlignVCenter,
                     words);
  };
  if (memory.height() >= 34) {
    const double middle = memory.center().y();
    legend(middle - 16, theme_->owners[4], "activation");
    legend(middle + 1, theme_->owners[1], "always held");
  }
}

QString PartitionStrip::layer_words(int at) const {
  const StripLayer& layer = strip_->layers[static_cast<std::size_t>(at)];
  return QString(
             "<b>%1</b> %2 · layer %3<br>forward %4 · backward %5<br>parameters %6, always held "
             "%7<br>activation of a microbatch %8")
      .arg(QString::fromStdString(layer.name).toHtmlEscaped(),
           QString::fromStdString(layer.kind).toHtmlEscaped())
      .arg(at)
      .arg(time_words(layer.forward_s), time_words(layer.backward_s), byte_words(layer.parameters),
           byte_words(layer.standing), byte_words(layer.activation));
}

bool PartitionStrip::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip && strip_) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const QRectF times = time_rect(), memory = memory_rect();
    const bool inside = help->pos().y() >= times.top() && help->pos().y() <= memory.bottom();
    const int layer = inside ? layer_at(places_, help->pos().x() - times.left()) : -1;
    if (layer >= 0)
      QToolTip::showText(help->globalPos(), layer_words(layer), this);
    else
      QToolTip::hideText();
    return true;
  }
  return QWidget::event(event);
}

void PartitionStrip::mousePressEvent(QMouseEvent* event) {
  if (!strip_ || event->button() != Qt::LeftButton || !time_rect().contains(event->position()))
    return;
  dragged_layer_ = layer_at(places_, event->position().x() - time_rect().left());
  update();
}

void PartitionStrip::mouseMoveEvent(QMouseEvent* event) {
  if (dragged_layer_ < 0 || !strip_)
    return;
  // A layer dragged over the adjacent stage moves there, together with the layers between.
  const int over = layer_at(places_, event->position().x() - time_rect().left());
  for (std::size_t s = 0; s < strip_->stages.size(); ++s) {
    const StripStage& stage = strip_->stages[s];
    if (dragged_layer_ < stage.first || dragged_layer_ >= stage.last)
      continue;
    const int number = static_cast<int>(s);
    if (over >= stage.last && dragged_layer_ > stage.first)
      move_border(number + 1, dragged_layer_);
    else if (over >= 0 && over < stage.first && dragged_layer_ + 1 < stage.last)
      move_border(number, dragged_layer_ + 1);
    return;
  }
}

void PartitionStrip::mouseReleaseEvent(QMouseEvent*) {
  if (dragged_layer_ < 0)
    return;
  dragged_layer_ = -1;
  workspace_.settle();
  update();
}

PanelDescriptor panel::partition() {
  return {.name = "partition",
          .title = "Partition",
          .help = "The layers and the stage boundaries, which can be dragged.",
          .shortcut = "Alt+2",
          .dock = PanelDock::Details,
          .make = [](PanelHost& host) -> MadePanel { return new PartitionStrip(host.workspace); }};
}

}  // namespace pipewright::gui
