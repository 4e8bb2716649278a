#include "pipewright/gui/look/labels.hpp"

#include "pipewright/gui/look/theme.hpp"

namespace pipewright::gui {

QLabel* make_label(int pixels, bool bold) {
  auto* label = new QLabel;
  label->setFont(font_of(pixels, bold));
  label->setTextFormat(Qt::PlainText);
  return label;
}

void set_colour(QWidget* widget, const QColor& colour) {
  const QString sheet = QString(".QLabel { color: %1; }").arg(colour.name());
  if (widget->styleSheet() != sheet)
    widget->setStyleSheet(sheet);
}

}  // namespace pipewright::gui
