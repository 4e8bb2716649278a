#include <QFile>
#include <QImage>
#include <QProcess>

#include "pipewright/gui/window/pictures.hpp"
#include "pipewright/plan/error.hpp"
#include "support/catch.hpp"
#include "support/temp_folder.hpp"

namespace save_picture_test {

using namespace pipewright;

QByteArray bytes_of(const std::filesystem::path& path) {
  QFile file(QString::fromStdString(path.string()));
  REQUIRE(file.open(QIODevice::ReadOnly));
  return file.readAll();
}

TEST_CASE("A plan's picture has the same bytes as the command line writes", "[gui][picture]") {
  const test::TempFolder folder;
  const std::string scenarios = PIPEWRIGHT_SOURCE_DIR "/scenarios/shared-card/";
  const auto written = folder.path() / "command.svg", saved = folder.path() / "window.svg";
  REQUIRE(QProcess::execute(PIPEWRIGHT_PROGRAM,
                            {"simulate", QString::fromStdString(scenarios + "scenario.json"),
                             "--costs", QString::fromStdString(scenarios + "costs.json"), "--svg",
                             QString::fromStdString(written.string()), "--json"}) == 0);
  gui::Workspace workspace;
  workspace.open(scenarios + "scenario.json");
  gui::save_picture(gui::picture_of(workspace), saved);
  CHECK(bytes_of(saved) == bytes_of(written));
}

TEST_CASE("A picture is also saved as PDF and PNG, and as nothing else", "[gui][picture]") {
  const test::TempFolder folder;
  gui::Workspace workspace;
  workspace.open(PIPEWRIGHT_SOURCE_DIR "/scenarios/shared-card/scenario.json");
  const draw::Scene scene = gui::picture_of(workspace);
  gui::save_picture(scene, folder.path() / "a.pdf");
  CHECK(bytes_of(folder.path() / "a.pdf").startsWith("%PDF"));
  gui::save_picture(scene, folder.path() / "a.png");
  const QImage picture(QString::fromStdString((folder.path() / "a.png").string()));
  CHECK(picture.width() >= static_cast<int>(scene.width));
  CHECK_THROWS_AS(gui::save_picture(scene, folder.path() / "a.bmp"), plan::InputError);
  CHECK_THROWS(gui::save_picture(scene, folder.path() / "no" / "a.svg"));
}

TEST_CASE("Without a timeline there is no picture", "[gui][picture]") {
  const gui::Workspace workspace;
  CHECK_THROWS_AS(gui::picture_of(workspace), plan::InputError);
}

}  // namespace save_picture_test
