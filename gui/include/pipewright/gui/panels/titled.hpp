#pragma once

// Parts that several panels use: headings, secondary text, a page layout, a widget with a title.

#include <QLabel>
#include <QVBoxLayout>
#include <QWidget>

#include "pipewright/gui/look/theme.hpp"

namespace pipewright::gui {

/// Rich text: a heading, and secondary text in a soft color.
inline QString heading(const QString& text) {
  return QString("<span style=\"font-size:%1px; font-weight:600\">%2</span>")
      .arg(heading_size)
      .arg(text);
}
inline QString soft(const QString& text, const Theme& theme) {
  return QString("<span style=\"color:%1\">%2</span>").arg(theme.soft_text.name(), text);
}

/// Sets a widget up as the page of a tab, with background and vertical layout.
inline QVBoxLayout* page_lines(QWidget* page) {
  page->setAutoFillBackground(true);
  page->setBackgroundRole(QPalette::Base);
  auto* lines = new QVBoxLayout(page);
  lines->setContentsMargins(2 * gap, 3 * gap / 2, gap, 0);
  lines->setSpacing(gap);
  return lines;
}

/// Returns a widget with a title above it.
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
