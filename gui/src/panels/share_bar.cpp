#include "pipewright/gui/panels/share_bar.hpp"

#include <QHelpEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <algorithm>

#include "pipewright/gui/look/words.hpp"

namespace pipewright::gui {
namespace {

constexpr double share_title = 20;
constexpr double share_bar_top = share_title + gap / 2.0;
constexpr double share_bar_height = 14;
constexpr double share_list_top = share_bar_top + share_bar_height + gap;
constexpr double share_line = 19;

}  // namespace

std::vector<Share> shares_of(const TimeBreakdown& spent, const Theme& theme) {
  std::vector<Share> shares;
  for (std::size_t at = 0; at < plan::idle_cause_count; ++at) {
    const auto cause = static_cast<plan::IdleCause>(at);
    if (spent.idle[at] > 0)
      shares.push_back({QString::fromStdString(plan::to_string(cause)), meaning_of(cause),
                        spent.idle[at], time_words(spent.idle[at]), theme.causes[at]});
  }
  if (spent.unnamed > 0)
    shares.push_back({"idle", "the cause is not known: this timeline has no Program", spent.unnamed,
                      time_words(spent.unnamed), theme.idle});
  std::stable_sort(shares.begin(), shares.end(),
                   [](const Share& a, const Share& b) { return a.value > b.value; });
  return shares;
}

ShareBar::ShareBar(QWidget* parent) : QWidget(parent), theme_(&light_theme()) {
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
}

void ShareBar::show_shares(const QString& title, const QString& total, std::vector<Share> shares) {
  title_ = title;
  total_ = total;
  shares_ = std::move(shares);
  QString spoken = title + ": " + total;
  for (const Share& share : shares_)
    spoken += ", " + share.name + " " + share.words;
  setAccessibleName(spoken);
  updateGeometry();
  update();
}

void ShareBar::set_theme(const Theme& theme) {
  theme_ = &theme;
  update();
}

QSize ShareBar::sizeHint() const {
  return {300, static_cast<int>(share_list_top + share_line * static_cast<double>(shares_.size()))};
}

QSize ShareBar::minimumSizeHint() const { return {220, sizeHint().height()}; }

QRectF ShareBar::line_of(std::size_t share) const {
  return {0, share_list_top + share_line * static_cast<double>(share), static_cast<double>(width()),
          share_line};
}

void ShareBar::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setFont(font_of(text_size, true));
  painter.setPen(theme_->text);
  painter.drawText(QRectF(0, 0, width(), share_title), Qt::AlignVCenter | Qt::AlignLeft, title_);
  painter.setFont(font_of(text_size));
  painter.drawText(QRectF(0, 0, width(), share_title), Qt::AlignVCenter | Qt::AlignRight, total_);
  double all = 0;
  for (const Share& share : shares_)
    all += share.value;
  paint_bar(painter, all);
  for (std::size_t i = 0; i < shares_.size(); ++i)
    paint_line(painter, i, all);
}

/// Paints the shares side by side. `all` is their sum.
void ShareBar::paint_bar(QPainter& painter, double all) const {
  const QRectF bar(0.5, share_bar_top + 0.5, width() - 1, share_bar_height - 1);
  QPainterPath round;
  round.addRoundedRect(bar, 3, 3);
  painter.fillPath(round, theme_->idle);
  painter.setClipPath(round);
  double x = bar.left();
  for (const Share& share : shares_) {
    const double part = all > 0 ? share.value / all * bar.width() : 0;
    painter.fillRect(QRectF(x, bar.top(), part, bar.height()), share.color);
    x += part;
    painter.fillRect(QRectF(x - 0.5, bar.top(), 1, bar.height()), theme_->panel);
  }
  painter.setClipping(false);
  painter.setPen(QPen(theme_->line, 1));
  painter.setBrush(Qt::NoBrush);
  painter.drawPath(round);
}

/// Paints a share as text below the bar.
void ShareBar::paint_line(QPainter& painter, std::size_t share, double all) const {
  const QRectF line = line_of(share);
  const Share& own = shares_[share];
  painter.setPen(QPen(theme_->line, 1));
  painter.setBrush(own.color);
  painter.drawRoundedRect(QRectF(0.5, line.center().y() - 5.5, 11, 11), 2, 2);
  painter.setPen(theme_->text);
  painter.drawText(line.adjusted(20, 0, -120, 0), Qt::AlignVCenter | Qt::AlignLeft, own.name);
  painter.drawText(line.adjusted(0, 0, -60, 0), Qt::AlignVCenter | Qt::AlignRight, own.words);
  painter.setPen(theme_->soft_text);
  painter.drawText(line, Qt::AlignVCenter | Qt::AlignRight,
                   percent_words(all > 0 ? own.value / all : 0));
}

bool ShareBar::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    for (std::size_t i = 0; i < shares_.size(); ++i)
      if (line_of(i).contains(help->pos())) {
        QToolTip::showText(help->globalPos(), shares_[i].name + ": " + shares_[i].help, this);
        return true;
      }
    QToolTip::hideText();
    return true;
  }
  return QWidget::event(event);
}

}  // namespace pipewright::gui
