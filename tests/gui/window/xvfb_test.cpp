// Starts the program on a display: Xvfb, whose screen is in a file.
#include <QFile>
#include <QFileInfo>
#include <QImage>
#include <QProcess>
#include <QStandardPaths>
#include <QTest>
#include <QtEndian>
#include <filesystem>
#include <functional>

#include "pipewright/gui/look/theme.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"
#include "support/temp_folder.hpp"

namespace xvfb_test {

using namespace pipewright;

constexpr int patience_ms = 60'000;

/// Returns the screen of an Xvfb that was started with -fbdir: an X window dump. Null without a
/// dump.
QImage screen_of(const QString& file) {
  QFile dump(file);
  if (!dump.open(QIODevice::ReadOnly))
    return {};
  const QByteArray bytes = dump.readAll();
  const auto field = [&](qsizetype index) {
    return bytes.size() >= 4 * (index + 1)
               ? static_cast<int>(qFromBigEndian<quint32>(bytes.constData() + 4 * index))
               : 0;
  };
  const int header = field(0), width = field(4), height = field(5), per_line = field(12),
            colors = field(19);
  const qsizetype begin = header + 12 * static_cast<qsizetype>(colors);
  if (width <= 0 || per_line < 4 * width || bytes.size() < begin + qsizetype{per_line} * height)
    return {};
  return QImage(reinterpret_cast<const uchar*>(bytes.constData() + begin), width, height, per_line,
                QImage::Format_RGB32)
      .copy();
}

double share_of(const QImage& image, const QColor& color) {
  int found = 0;
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x)
      found += image.pixel(x, y) == color.rgb() ? 1 : 0;
  return static_cast<double>(found) / std::max(1, image.width() * image.height());
}

bool waited_for(const std::function<bool()>& done) {
  for (int waited = 0; waited < patience_ms; waited += 100) {
    if (done())
      return true;
    QTest::qWait(100);
  }
  return false;
}

/// A program that ends with its owner.
struct Program {
  QProcess process;
  ~Program() {
    process.terminate();
    if (!process.waitForFinished(10'000))
      process.kill();
    process.waitForFinished(10'000);
  }
};

/// Returns the last complete run of `./dev demo`, or a run that is stored with the tests.
std::filesystem::path run_to_show() {
  namespace fs = std::filesystem;
  fs::path newest;
  std::error_code none;
  for (const auto& folder : fs::directory_iterator(PIPEWRIGHT_SOURCE_DIR "/runs", none)) {
    const bool is_demo = folder.path().filename().string().starts_with("gpt-text-");
    if (is_demo && fs::exists(folder.path() / "report.json") &&
        fs::exists(folder.path() / "measured.trace.json") &&
        (newest.empty() || fs::last_write_time(folder) > fs::last_write_time(newest)))
      newest = folder.path();
  }
  if (!newest.empty())
    return newest;
  WARN("`./dev demo` has left no run here: the one in tests/data is shown");
  return PIPEWRIGHT_TEST_DATA_DIR "/gui/run";
}

TEST_CASE("The program shows a finished run on a display", "[gui][xvfb]") {
  const QString xvfb = QStandardPaths::findExecutable("Xvfb");
  if (xvfb.isEmpty())
    test::skip("Xvfb is not installed (apt install xvfb)");
  const test::TempFolder folder;
  Program display;
  display.process.start(xvfb, {"-displayfd", "1", "-screen", "0", "1600x1000x24", "-fbdir",
                               QString::fromStdString(folder.path().string())});
  REQUIRE(display.process.waitForStarted());
  QByteArray number;
  REQUIRE(waited_for([&] {
    display.process.waitForReadyRead(100);
    number += display.process.readAllStandardOutput();
    return number.endsWith('\n');
  }));

  Program window;
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  environment.insert("DISPLAY", ":" + QString(number).trimmed());
  environment.insert("QT_QPA_PLATFORM", "xcb");
  environment.remove("QT_SCALE_FACTOR");
  window.process.setProcessEnvironment(environment);
  const std::filesystem::path run = run_to_show();
  CAPTURE(run.string());
  window.process.start(PIPEWRIGHT_GUI_PROGRAM, {QString::fromStdString(run.string())});
  REQUIRE(window.process.waitForStarted());

  const QString file = QString::fromStdString((folder.path() / "Xvfb_screen0").string());
  const gui::Theme& theme = gui::light_theme();
  QImage screen;
  const bool shown = waited_for([&] {
    screen = screen_of(file);
    return share_of(screen, theme.kinds[gui::kind_class(plan::InstructionKind::Forward)].fill) >
               0.01 &&
           share_of(screen, theme.kinds[gui::kind_class(plan::InstructionKind::Backward)].fill) >
               0.01;
  });
  QTest::qWait(300);  // the rest of the window
  screen = screen_of(file);
  std::filesystem::create_directories(PIPEWRIGHT_PICTURE_REPORT_DIR);
  screen.save(PIPEWRIGHT_PICTURE_REPORT_DIR "/xvfb.png");
  CAPTURE(window.process.readAllStandardError().toStdString());
  CHECK(shown);
  CHECK(window.process.state() == QProcess::Running);
}

TEST_CASE("Without a display the program says so in one line", "[gui][xvfb]") {
  Program window;
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"})
    environment.remove(name);
  window.process.setProcessEnvironment(environment);
  const std::filesystem::path run = run_to_show();
  CAPTURE(run.string());
  window.process.start(PIPEWRIGHT_GUI_PROGRAM, {QString::fromStdString(run.string())});
  REQUIRE(window.process.waitForFinished(patience_ms));
  CHECK(window.process.exitCode() == 2);
  const QByteArray said = window.process.readAllStandardError();
  CHECK(said.count('\n') == 1);
  CHECK(said.contains("display"));
}

TEST_CASE("A screenshot needs no display", "[gui][xvfb]") {
  const test::TempFolder folder;
  const auto file = folder.path() / "picture.png";
  Program window;
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM", "QT_SCALE_FACTOR"})
    environment.remove(name);
  window.process.setProcessEnvironment(environment);
  window.process.start(PIPEWRIGHT_GUI_PROGRAM,
                       {"--screenshot", QString::fromStdString(file.string()), "--size", "1100x700",
                        PIPEWRIGHT_TEST_DATA_DIR "/gui/run"});
  REQUIRE(window.process.waitForFinished(patience_ms));
  CAPTURE(window.process.readAllStandardError().toStdString());
  CHECK(window.process.exitCode() == 0);
  const QImage picture(QString::fromStdString(file.string()));
  CHECK(picture.size() == QSize(1100, 700));
  CHECK(share_of(picture.convertToFormat(QImage::Format_RGB32),
                 gui::light_theme().kinds[gui::kind_class(plan::InstructionKind::Forward)].fill) >
        0.005);
}

TEST_CASE("A screenshot of an unreadable file fails with code 2 and a reason", "[gui][xvfb]") {
  const test::TempFolder folder;
  const auto picture = folder.path() / "picture.png";
  const auto broken = folder.path() / "broken.json";
  std::ofstream(broken) << "{\"format\": \"pipewright/scenario/1\", ";
  for (const std::filesystem::path& file : {broken, folder.path() / "none.json"}) {
    Program window;
    window.process.start(PIPEWRIGHT_GUI_PROGRAM,
                         {"--screenshot", QString::fromStdString(picture.string()),
                          QString::fromStdString(file.string())});
    REQUIRE(window.process.waitForFinished(patience_ms));
    const QByteArray said = window.process.readAllStandardError();
    CAPTURE(said.toStdString());
    CHECK(window.process.exitCode() == 2);
    CHECK(said.contains(QByteArray::fromStdString(file.filename().string())));
    CHECK_FALSE(std::filesystem::exists(picture));
  }
}

}  // namespace xvfb_test
