#pragma once

// Compares pictures of the window with those in tests/data/gui/pictures. Text is painted as boxes
// (test_font.hpp), so that they are equal on every machine with this version of Qt.

#include <QWidget>
#include <string>

namespace pipewright::test {

/// Renders a widget in this size. A scale of 2 comes from QT_SCALE_FACTOR.
QImage picture_of(QWidget& widget, QSize size = {640, 360});

/// Fails if the picture differs from the stored one by more than antialiasing may cause; then it
/// writes NAME.actual.png and NAME.diff.png (differences are red) into the build folder. With
/// PIPEWRIGHT_REFRESH_PICTURES=1 in the environment it stores the picture instead.
void check_picture(const std::string& name, const QImage& picture);

}  // namespace pipewright::test
