#pragma once

#include <QLabel>
#include <QVBoxLayout>
#include <QWidget>

#include "pipewright/gui/look/theme.hpp"

namespace pipewright::gui {

/// A widget with a line of words above it.
inline QWidget* titled(const QString& title, QWidget* widget) {
  auto* both = new QWidget;
  auto* lines = new QVBoxLayout(both);
  lines->setContentsMargins(0, 0, 0, 0);
  lines->setSpacing(gap / 2);
  auto* words = new QLabel(title);
  words->setFont(font_of(text_size, true));
  words->setContentsMargins(gap, 0, 0, 0);
  words->setFixedHeight(20);
  lines->addWidget(words);
  lines->addWidget(widget, 1);
  return both;
}

}  // namespace pipewright::gui
