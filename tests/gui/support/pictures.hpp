#pragma once

// Pictures of the window, held against those in tests/data/gui/pictures. Text is boxes there
// (test_font.hpp), so that they hold on every machine with this version of Qt.

#include <QWidget>
#include <string>

namespace pipewright::test {

/// What a widget of this size looks like. A scale of 2 comes from QT_SCALE_FACTOR.
QImage picture_of(QWidget& widget, QSize size = {640, 360});

/// Fails where the picture is not the stored one, but for what antialiasing may differ by: then it
/// leaves NAME.actual.png and NAME.diff.png (what differs is red) beside the build. With
/// PIPEWRIGHT_REFRESH_PICTURES=1 in the environment it stores the picture instead.
void check_picture(const std::string& name, const QImage& picture);

}  // namespace pipewright::test
