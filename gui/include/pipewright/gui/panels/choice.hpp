#pragma once

// A combo box that paints its own drop-down arrow, because the window's style sheet removes the
// arrow of the native style.

#include <QComboBox>

namespace pipewright::gui {

class Choice : public QComboBox {
 protected:
  void paintEvent(QPaintEvent* event) override;
};

}  // namespace pipewright::gui
