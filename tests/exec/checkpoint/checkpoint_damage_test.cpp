// Whatever happens to the files of a checkpoint, it is loaded as it was saved or refused by name.

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

/// Steps 1 and 2, each of one layer.
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

/// Hands each file of the newest checkpoint to `spoil`, which changes it as it likes and calls
/// `require_refused` after each change; then puts it back.
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

/// From one place to be spoilt to the next; odd, so that all bits have their turn.
constexpr std::size_t stride = test::sanitized ? 7 : 1;

TEST_CASE("checkpoint: cut off at any byte, it is refused by name and the one before is used",
          "[exec][checkpoint]") {
  spoil_each_file([](const fs::path& file, const std::string& good, const auto& require_refused) {
    for (std::size_t cut = 1; cut <= good.size(); cut += stride) {
      fs::resize_file(file, good.size() - cut);
      require_refused("shorter by " + std::to_string(cut));
    }
  });
}

TEST_CASE("checkpoint: with any byte changed, it is refused by name and the one before is used",
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

TEST_CASE("checkpoint: with bytes behind the end of a file, it is refused by name",
          "[exec][checkpoint]") {
  spoil_each_file([](const fs::path& file, const std::string& good, const auto& require_refused) {
    overwrite(file, good + '\0');
    require_refused("longer");
  });
}

TEST_CASE("checkpoint: a list sees a file that is cut off or missing, without reading it",
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

TEST_CASE("checkpoint: what is damaged after it was opened is refused when it is read",
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

TEST_CASE("checkpoint: with no whole one left, the folder is refused", "[exec][checkpoint]") {
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
