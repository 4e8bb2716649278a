#pragma once

// Parts of a whole: one stacked bar, and a line with name and value of each part below it.

#include <QString>
#include <QWidget>
#include <vector>

#include "pipewright/gui/document/why.hpp"
#include "pipewright/gui/look/theme.hpp"

namespace pipewright::gui {

struct Share {
  QString name;
  QString help;
  double value = 0;
  QString words;  // formatted value
  QColor color;
};

/// Returns the idle time by cause, without causes that do not occur.
std::vector<Share> shares_of(const TimeBreakdown& spent, const Theme& theme);

class ShareBar : public QWidget {
 public:
  explicit ShareBar(QWidget* parent = nullptr);
  /// `total` is the text next to the title.
  void show_shares(const QString& title, const QString& total, std::vector<Share> shares);
  void set_theme(const Theme& theme);
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  bool event(QEvent* event) override;

 private:
  QRectF line_of(std::size_t share) const;
  void paint_bar(QPainter& painter, double all) const;
  void paint_line(QPainter& painter, std::size_t share, double all) const;

  QString title_, total_;
  std::vector<Share> shares_;
  const Theme* theme_;
};

}  // namespace pipewright::gui
