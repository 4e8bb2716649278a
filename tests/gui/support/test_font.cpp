#include "gui/support/test_font.hpp"

#include <QFontDatabase>
#include <QStringList>
#include <stdexcept>

namespace pipewright::test {

QFont test_font() {
  const int id = QFontDatabase::addApplicationFont(PIPEWRIGHT_TEST_DATA_DIR "/gui/boxes.ttf");
  const QStringList families = QFontDatabase::applicationFontFamilies(id);
  if (families.isEmpty())
    throw std::runtime_error("the test font cannot be loaded");
  QFont font(families.front());
  font.setHintingPreference(QFont::PreferNoHinting);
  font.setStyleStrategy(static_cast<QFont::StyleStrategy>(
      QFont::NoFontMerging | QFont::NoSubpixelAntialias | QFont::PreferAntialias));
  return font;
}

}  // namespace pipewright::test
