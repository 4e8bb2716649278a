#include "pipewright/gui/look/labels.hpp"

#include "pipewright/gui/look/theme.hpp"

namespace pipewright::gui {

QLabel* make_label(int pixels, bool bold) {
  auto* label = new QLabel;
  label->setFont(font_of(pixels, bold));
  label->setTextFormat(Qt::PlainText);
  return label;
}

void set_color(QWidget* widget, const QColor& color) {
  const QString sheet = QString(".QLabel { color: %1; }").arg(color.name());
  if (widget->styleSheet() != sheet)
    widget->setStyleSheet(sheet);
}

}  // namespace pipewright::gui
