#include "gui/support/pictures.hpp"

#include <QApplication>
#include <QImage>
#include <QPixmap>
#include <QRect>
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "support/catch.hpp"

namespace pipewright::test {
namespace {

constexpr int same_level = 10;      // of 255, of a color
constexpr int most_different = 24;  // pixels of a whole picture

const std::filesystem::path stored_folder = PIPEWRIGHT_TEST_DATA_DIR "/gui/pictures";
const std::filesystem::path report_folder = PIPEWRIGHT_PICTURE_REPORT_DIR;

QString text(const std::filesystem::path& path) { return QString::fromStdString(path.string()); }

int difference(QRgb a, QRgb b) {
  return std::max({std::abs(qRed(a) - qRed(b)), std::abs(qGreen(a) - qGreen(b)),
                   std::abs(qBlue(a) - qBlue(b))});
}

struct Comparison {
  int different = 0;
  int greatest = 0;
  QRect where;
  QImage marked;  // pale, with differences in red
};

Comparison compared(const QImage& actual, const QImage& stored) {
  Comparison result;
  result.marked = QImage(actual.size(), QImage::Format_RGB32);
  for (int y = 0; y < actual.height(); ++y)
    for (int x = 0; x < actual.width(); ++x) {
      const int by = difference(actual.pixel(x, y), stored.pixel(x, y));
      result.greatest = std::max(result.greatest, by);
      const int pale = 200 + qGray(actual.pixel(x, y)) / 5;
      result.marked.setPixel(x, y, by > same_level ? qRgb(220, 0, 0) : qRgb(pale, pale, pale));
      if (by > same_level) {
        ++result.different;
        result.where = result.where.united({x, y, 1, 1});
      }
    }
  return result;
}

}  // namespace

QImage picture_of(QWidget& widget, QSize size) {
  widget.resize(size);
  widget.show();
  QApplication::processEvents();
  QImage picture = widget.grab().toImage().convertToFormat(QImage::Format_RGB32);
  picture.setDevicePixelRatio(1);
  return picture;
}

void check_picture(const std::string& name, const QImage& picture) {
  namespace fs = std::filesystem;
  const bool doubled = qEnvironmentVariable("QT_SCALE_FACTOR") == "2";
  const std::string file = name + (doubled ? "-x2" : "");
  const fs::path stored_file = stored_folder / (file + ".png");
  if (qEnvironmentVariableIntValue("PIPEWRIGHT_REFRESH_PICTURES") == 1) {
    fs::create_directories(stored_folder);
    REQUIRE(picture.save(text(stored_file)));
    WARN(stored_file.string() << " is stored as it looks now");
    return;
  }
  fs::create_directories(report_folder);
  const fs::path actual_file = report_folder / (file + ".actual.png"),
                 diff_file = report_folder / (file + ".diff.png");
  fs::remove(actual_file);
  fs::remove(diff_file);
  const QImage stored = QImage(text(stored_file)).convertToFormat(QImage::Format_RGB32);
  if (stored.size() != picture.size()) {
    picture.save(text(actual_file));
    FAIL_CHECK(file << ": is " << picture.width() << " × " << picture.height() << ", stored is "
                    << stored.width() << " × " << stored.height() << "; see "
                    << actual_file.string());
    return;
  }
  const Comparison result = compared(picture, stored);
  if (result.different <= most_different) {
    CHECK(result.different <= most_different);
    return;
  }
  picture.save(text(actual_file));
  result.marked.save(text(diff_file));
  FAIL_CHECK(
      file << ": " << result.different << " pixels differ, by up to " << result.greatest
           << " of 255, within x " << result.where.left() << "–" << result.where.right() << ", y "
           << result.where.top() << "–" << result.where.bottom()
           << "\n  now:    " << actual_file.string() << "\n  red:    " << diff_file.string()
           << "\n  stored: " << stored_file.string()
           << "\nIf it is meant to look so: PIPEWRIGHT_REFRESH_PICTURES=1 ctest -R pictures");
}

}  // namespace pipewright::test
