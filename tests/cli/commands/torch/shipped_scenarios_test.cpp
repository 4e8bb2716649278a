// Each shipped scenario runs with the bits of training without a pipeline, and has the expected
// timeline in its folder.

#include <algorithm>

#include "cli/support/program.hpp"
#include "support/catch.hpp"

namespace shipped_scenarios_test {

using namespace pipewright;
namespace fs = std::filesystem;

const fs::path scenarios = PIPEWRIGHT_SOURCE_DIR "/scenarios";

/// Returns the folders that include their data.
std::vector<fs::path> shipped() {
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(scenarios))
    if (exists(entry.path() / "scenario.json") && exists(entry.path() / "timeline.svg"))
      folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  return folders;
}

TEST_CASE("Each shipped scenario runs with one command", "[cli]") {
  const auto folders = shipped();
  REQUIRE(folders.size() >= 2);
  for (const fs::path& folder : folders) {
    CAPTURE(folder);
    const test::TempFolder out;
    std::vector<std::string> words{"run", (folder / "scenario.json").string(), "--verify", "-o",
                                   (out.path() / "run").string()};
    for (const char* change :
         {"training.steps=2", "training.microbatch_size=1", "pipeline.microbatches=2",
          "profile.warm_up=1", "profile.least_repeats=2", "profile.most_repeats=2"})
      words.insert(words.end(), {"--set", change});
    const test::Result done = test::run_program(words);
    CAPTURE(done.err);
    CHECK(done.exit_code == 0);
    CHECK(done.out.find("2 of 2 losses") != std::string::npos);
    CHECK(exists(out.path() / "run" / "report.json"));
  }
}

TEST_CASE("Each shipped scenario has the timeline that follows from its costs", "[cli]") {
  for (const fs::path& folder : shipped()) {
    CAPTURE(folder);
    const test::TempFolder out;
    const fs::path svg = out.path() / "timeline.svg";
    const test::Result done =
        test::run_program({"simulate", (folder / "scenario.json").string(), "--costs",
                           (folder / "costs.json").string(), "--svg", svg.string()});
    CAPTURE(done.err);
    REQUIRE(done.exit_code == 0);
    CHECK(test::text_of(svg) == test::text_of(folder / "timeline.svg"));
  }
}

}  // namespace shipped_scenarios_test
