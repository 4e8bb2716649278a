// Draws the pictures of README.md and docs/gui.md, each with the command that is listed here.
// PIPEWRIGHT_REFRESH_PICTURES=1 stores them.

#include <QImage>
#include <QProcess>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "support/catch.hpp"
#include "support/temp_folder.hpp"
#include "trace/support/made_up_job.hpp"

namespace pages_test {

using namespace pipewright;
namespace fs = std::filesystem;

struct Picture {
  const char* name;
  QStringList options;
  const char* opened;  // made_up_job: the generated job
};
constexpr const char* made_up_job = "job.json";

/// Writes a job of 96 workers, of which dp 7 on stage 3 is slow.
void write_made_up_job(const fs::path& file) {
  auto job = test::noisy_job(12, 8, 12, {100, 150, 200, 250}, 3 * 12 + 7);
  job.every_s = 0.8;
  std::ofstream(file) << job.trace();
}

const std::vector<Picture>& pictures() {
  static const char* run = "tests/data/gui/run";
  static const char* plan = "scenarios/shared-card/scenario.json";
  static const std::vector<Picture> all{
      {"run", {"--pick", "0@80"}, run},
      {"residuals", {"--view", "residuals"}, run},
      {"partition", {"--view", "partition"}, plan},
      {"memory", {"--view", "memory", "--dark"}, plan},
      {"savings", {"--view", "savings"}, plan},
      {"plans", {"--view", "plan.search"}, plan},
      {"job", {"--view", "rows.by_stage"}, made_up_job},
  };
  return all;
}

QImage drawn(const Picture& picture, const fs::path& into) {
  const test::TempFolder made;
  std::string opened = picture.opened;
  if (opened == made_up_job) {
    opened = made.path() / made_up_job;
    write_made_up_job(opened);
  }
  QProcess program;
  program.setWorkingDirectory(PIPEWRIGHT_SOURCE_DIR);
  const auto file = into / (std::string(picture.name) + ".png");
  program.start(
      PIPEWRIGHT_GUI_PROGRAM,
      QStringList{"--screenshot", QString::fromStdString(file.string()), "--size", "1600x900"} +
          picture.options + QStringList{QString::fromStdString(opened)});
  REQUIRE(program.waitForFinished(60'000));
  CAPTURE(program.readAllStandardError().toStdString());
  CHECK(program.exitCode() == 0);
  return QImage(QString::fromStdString(file.string()));
}

TEST_CASE("Every picture of the pages is drawn by a command", "[gui][docs]") {
  const bool refresh = std::getenv("PIPEWRIGHT_REFRESH_PICTURES") != nullptr;
  const fs::path stored = PIPEWRIGHT_SOURCE_DIR "/docs/pictures";
  const test::TempFolder folder;
  for (const Picture& picture : pictures()) {
    CAPTURE(picture.name);
    const QImage now = drawn(picture, refresh ? stored : folder.path());
    CHECK(now.size() == QSize(1600, 900));
    std::set<QRgb> colors;
    for (int x = 0; x < now.width(); x += 3)
      for (int y = 0; y < now.height(); y += 3)
        colors.insert(now.pixel(x, y));
    CHECK(colors.size() > 50);  // it is not empty
    CHECK(fs::exists(stored / (std::string(picture.name) + ".png")));
  }
}

TEST_CASE("The pages show no picture that is not drawn here", "[gui][docs]") {
  for (const char* page : {"README.md", "docs/gui.md"}) {
    std::ifstream file(fs::path(PIPEWRIGHT_SOURCE_DIR) / page);
    std::string text(std::istreambuf_iterator<char>(file), {});
    for (std::size_t at = text.find("pictures/"); at != std::string::npos;
         at = text.find("pictures/", at + 1)) {
      const std::string name = text.substr(at + 9, text.find(".png", at) - at - 9);
      CAPTURE(page, name);
      CHECK(std::any_of(pictures().begin(), pictures().end(),
                        [&](const Picture& picture) { return picture.name == name; }));
    }
  }
}

}  // namespace pages_test
