#include "pipewright/gui/window/tour.hpp"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QPainter>
#include <QPainterPath>
#include <QVBoxLayout>
#include <algorithm>

namespace pipewright::gui {
namespace {

constexpr int card_width = 320;

}  // namespace

Tour::Tour(std::vector<TourStop> stops, QWidget* window)
    : QWidget(window),
      stops_(std::move(stops)),
      theme_(&light_theme()),
      card_(new QWidget(this)),
      title_(new QLabel),
      text_(new QLabel),
      count_(new QLabel),
      next_(new QPushButton("Next")) {
  setObjectName("tour");
  setFocusPolicy(Qt::StrongFocus);
  card_->setObjectName("tour_card");
  card_->setFixedWidth(card_width);
  auto* layout = new QVBoxLayout(card_);
  layout->setContentsMargins(2 * gap, 2 * gap, 2 * gap, gap * 3 / 2);
  layout->setSpacing(gap);
  title_->setFont(font_of(heading_size, true));
  text_->setWordWrap(true);
  count_->setForegroundRole(QPalette::PlaceholderText);
  layout->addWidget(title_);
  layout->addWidget(text_);
  auto* buttons = new QHBoxLayout;
  auto* skip = new QPushButton("Skip the tour");
  next_->setDefault(true);
  buttons->addWidget(count_);
  buttons->addStretch();
  buttons->addWidget(skip);
  buttons->addWidget(next_);
  layout->addLayout(buttons);
  connect(skip, &QPushButton::clicked, this, [this] { end(); });
  connect(next_, &QPushButton::clicked, this, [this] { next(); });
  window->installEventFilter(this);
  hide();
}

void Tour::set_theme(const Theme& theme) {
  theme_ = &theme;
  card_->setStyleSheet(
      QString("#tour_card { background: %1; border: 1px solid %2; border-radius: 8px; }")
          .arg(theme.panel.name(), theme.line.name()));
  update();
}

void Tour::begin() {
  at_ = 0;
  resize(parentWidget()->size());
  show();
  raise();
  show_stop();
}

void Tour::next() {
  ++at_;
  if (at_ >= stops_.size())
    end();
  else
    show_stop();
}

void Tour::end() {
  hide();
  parentWidget()->setFocus();
}

QRect Tour::place_now() const {
  const QWidget* place = stops_[at_].place;
  if (place == nullptr || !place->isVisible())
    return {};
  return QRect(place->mapTo(parentWidget(), QPoint(0, 0)), place->size()).intersected(rect());
}

void Tour::show_stop() {
  const TourStop& stop = stops_[at_];
  if (stop.before)
    stop.before();
  title_->setText(stop.title);
  text_->setText(stop.text);
  count_->setText(QString("%1 of %2").arg(at_ + 1).arg(stops_.size()));
  next_->setText(at_ + 1 == stops_.size() ? "Done" : "Next");
  card_->adjustSize();
  const QRect place = place_now();
  // Next to the place if there is room, otherwise within it.
  QPoint at = rect().center() - card_->rect().center();
  if (!place.isEmpty()) {
    if (place.left() > card_width + 4 * gap)
      at = {place.left() - card_width - 2 * gap, place.top() + 2 * gap};
    else if (place.top() > card_->height() + 4 * gap)
      at = {place.left() + 3 * gap, place.top() - card_->height() - 2 * gap};
    else if (height() - place.bottom() > card_->height() + 4 * gap)
      at = {place.left() + 3 * gap, place.bottom() + 2 * gap};
    else
      at = place.center() - card_->rect().center();
  }
  at.setX(std::clamp(at.x(), gap, std::max(gap, width() - card_width - gap)));
  at.setY(std::clamp(at.y(), gap, std::max(gap, height() - card_->height() - gap)));
  card_->move(at);
  next_->setFocus();
  update();
}

void Tour::paintEvent(QPaintEvent*) {
  if (at_ >= stops_.size())
    return;
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  QPainterPath shade;
  shade.addRect(rect());
  const QRect place = place_now();
  if (!place.isEmpty()) {
    QPainterPath hole;
    hole.addRoundedRect(QRectF(place).adjusted(2, 2, -2, -2), 6, 6);
    shade = shade.subtracted(hole);
    painter.setPen(QPen(theme_->accent, 2));
    painter.drawPath(hole);
  }
  painter.fillPath(shade, QColor(10, 14, 20, theme_->dark ? 150 : 90));
}

void Tour::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape)
    end();
  else if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Space ||
           event->key() == Qt::Key_Right)
    next();
}

void Tour::mousePressEvent(QMouseEvent*) {}

bool Tour::eventFilter(QObject*, QEvent* event) {
  if (event->type() == QEvent::Resize && isVisible()) {
    resize(parentWidget()->size());
    show_stop();
  }
  return false;
}

}  // namespace pipewright::gui
