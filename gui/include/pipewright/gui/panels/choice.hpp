#pragma once

// A combo box that paints its own drop-down arrow, because the style sheet removes the style's.

#include <QComboBox>

namespace pipewright::gui {

class Choice : public QComboBox {
 protected:
  void paintEvent(QPaintEvent* event) override;
};

}  // namespace pipewright::gui
