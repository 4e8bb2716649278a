#pragma once

// A combo box with a mark that more can be chosen: a style sheet takes the style's own away.

#include <QComboBox>

namespace pipewright::gui {

class Choice : public QComboBox {
 protected:
  void paintEvent(QPaintEvent* event) override;
};

}  // namespace pipewright::gui
