#pragma once

// Labels in the sizes and colours of the theme.

#include <QColor>
#include <QLabel>

namespace pipewright::gui {

/// A label of plain text in this size.
QLabel* make_label(int pixels, bool bold = false);

/// Colours a label by a style sheet, which outlives the window's; of labels alone, so that their
/// tooltips keep theirs.
void set_colour(QWidget* widget, const QColor& colour);

}  // namespace pipewright::gui
