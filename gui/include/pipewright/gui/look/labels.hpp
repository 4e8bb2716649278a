#pragma once

// Labels in the sizes and colors of the theme.

#include <QColor>
#include <QLabel>

namespace pipewright::gui {

/// Returns a label of plain text in this size.
QLabel* make_label(int pixels, bool bold = false);

/// Sets a label's color by a style sheet, which takes precedence over the window's. It applies to
/// labels only, so that their tooltips keep their color.
void set_color(QWidget* widget, const QColor& color);

}  // namespace pipewright::gui
