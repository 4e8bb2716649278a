// Damaged checkpoint files: a checkpoint is either loaded as it was saved or rejected with the name
// of the file.

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "exec/support/checkpoints.hpp"
#include "pipewright/exec/checkpoint/checkpoint.hpp"
#include "pipewright/exec/checkpoint/checkpoint_writer.hpp"
#include "pipewright/exec/checkpoint/list_checkpoints.hpp"
#include "pipewright/plan/error.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/sanitized.hpp"
#include "support/temp_folder.hpp"

namespace checkpoint_damage_test {

using namespace pipewright;
using namespace pipewright::exec;
using test::names_in;
using test::snapshot_of;
using test::TempFolder;
namespace fs = std::filesystem;

/// Saves steps 1 and 2, each with one layer.
void save_two(const fs::path& folder) {
  CheckpointWriter writer(folder, {});
  for (const int step : {1, 2})
    REQUIRE(test::save(writer, snapshot_of(step, {0})).empty());
}

std::string contents_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

void overwrite(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

/// Passes each file of the newest checkpoint to `spoil`, which changes it and calls
/// `require_refused` after each change, and then restores the file.
template <class Spoil>
void spoil_each_file(const Spoil& spoil) {
  const TempFolder folder;
  save_two(folder.path());
  const fs::path newest = folder.path() / "step_00000002";
  for (const std::string& name : names_in(newest)) {
    const std::string good = contents_of(newest / name);
    spoil(newest / name, good, [&](const std::string& how) {
      std::vector<std::string> told;
      const Checkpoint used =
          open_newest(folder.path(), [&](const std::string& line) { told.push_back(line); });
      INFO(name << " " << how);
      if (told.size() != 1 || used.training().step != 1)
        FAIL("it was not refused");
      if (told.front().find((newest / name).string()) != 0)
        FAIL("the file is not named: " << told.front());
    });
    overwrite(newest / name, good);
  }
  CHECK(open_newest(folder.path(), [](const std::string& line) { FAIL_CHECK(line); })
            .training()
            .step == 2);
}

/// Distance between the places to damage; odd, so that all bits are tried.
constexpr std::size_t stride = test::sanitized ? 7 : 1;

TEST_CASE("Checkpoint: truncated at any byte it is rejected by name and the one before is used",
          "[exec][checkpoint]") {
  spoil_each_file([](const fs::path& file, const std::string& good, const auto& require_refused) {
    for (std::size_t cut = 1; cut <= good.size(); cut += stride) {
      fs::resize_file(file, good.size() - cut);
      require_refused("shorter by " + std::to_string(cut));
    }
  });
}

TEST_CASE("Checkpoint: with any byte changed it is rejected by name and the one before is used",
          "[exec][checkpoint]") {
  spoil_each_file([](const fs::path& file, const std::string& good, const auto& require_refused) {
    for (std::size_t at = 0; at < good.size(); at += stride) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
      overwrite(file, bad);
      require_refused("changed at " + std::to_string(at));
    }
  });
}

TEST_CASE("Checkpoint: with extra bytes at the end of a file it is rejected by name",
          "[exec][checkpoint]") {
  spoil_each_file([](const fs::path& file, const std::string& good, const auto& require_refused) {
    overwrite(file, good + '\0');
    require_refused("longer");
  });
}

TEST_CASE("Checkpoint: a list detects truncated and missing files without reading them",
          "[exec][checkpoint]") {
  const TempFolder folder;
  save_two(folder.path());
  const fs::path file = folder.path() / "step_00000002" / "optimizer_000.safetensors";
  const auto size = fs::file_size(file);
  fs::resize_file(file, size - 1);
  CHECK(list_checkpoints(folder.path()).front().damage ==
        fmt::format("{}: damaged: it has {} of {} bytes", file.string(), size - 1, size));
  fs::remove(file);
  CHECK(list_checkpoints(folder.path()).front().damage ==
        file.string() + ": No such file or directory");
}

TEST_CASE("Checkpoint: damage after opening is detected when the file is read",
          "[exec][checkpoint]") {
  const TempFolder folder;
  save_two(folder.path());
  const auto checkpoint = Checkpoint::open(folder.path() / "step_00000002");
  const fs::path file = checkpoint.folder() / "layer_000.safetensors";
  std::string bytes = contents_of(file);
  bytes.back() = static_cast<char>(~bytes.back());
  overwrite(file, bytes);
  CHECK_THAT(test::error_of([&] { checkpoint.layer(0); }),
             Catch::Contains(file.string() + ": damaged: its contents have the checksum"));
  CHECK_THROWS_AS(checkpoint.verify(), plan::InputError);
}

TEST_CASE("Checkpoint: a folder without an intact checkpoint is rejected", "[exec][checkpoint]") {
  const TempFolder folder;
  save_two(folder.path());
  for (const std::string& name : names_in(folder.path()))
    overwrite(folder.path() / name / "manifest.json", "{}");
  int told = 0;
  CHECK(test::error_of([&] { open_newest(folder.path(), [&](const std::string&) { ++told; }); }) ==
        folder.path().string() + ": contains no complete checkpoint");
  CHECK(told == 2);
}

}  // namespace checkpoint_damage_test
