#pragma once

// Returns a font in which every letter is the same box (tests/data/gui/boxes.ttf), so that painted
// text does not depend on the fonts of a machine.

#include <QFont>

namespace pipewright::test {

QFont test_font();

}  // namespace pipewright::test
