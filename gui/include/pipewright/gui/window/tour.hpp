#pragma once

// A short tour of the window, one place after the other. Esc ends it.

#include <QLabel>
#include <QPushButton>
#include <QWidget>
#include <functional>
#include <vector>

#include "pipewright/gui/look/theme.hpp"

namespace pipewright::gui {

struct TourStop {
  QWidget* place = nullptr;
  QString title;
  QString text;
  std::function<void()> before{};  // brings the place to the front
};

class Tour : public QWidget {
 public:
  Tour(std::vector<TourStop> stops, QWidget* window);
  void set_theme(const Theme& theme);
  void begin();
  void next();
  void end();
  std::size_t at() const { return at_; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void show_stop();
  QRect place_now() const;

  std::vector<TourStop> stops_;
  std::size_t at_ = 0;
  const Theme* theme_;
  QWidget* card_;
  QLabel* title_;
  QLabel* text_;
  QLabel* count_;
  QPushButton* next_;
};

}  // namespace pipewright::gui
