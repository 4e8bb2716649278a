// A plan is exported to the configuration of other trainers, and read back as the same plan.

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/support/program.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "support/catch.hpp"

namespace export_command_test {

using namespace pipewright;
using test::run_program;
using test::TempFolder;

const std::string scenario = PIPEWRIGHT_SOURCE_DIR "/scenarios/shared-card/scenario.json";
const std::string costs = PIPEWRIGHT_SOURCE_DIR "/scenarios/shared-card/costs.json";

nlohmann::json simulated(std::vector<std::string> more) {
  std::vector<std::string> words{"simulate", scenario, "--costs", costs, "--json"};
  words.insert(words.end(), more.begin(), more.end());
  const auto result = run_program(words);
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  return nlohmann::json::parse(result.out);
}

TEST_CASE("export: the file of another trainer, read by --cut, has the plan's prediction",
          "[cli][export]") {
  const std::vector<std::string> settings{
      "--set", "pipeline.ranks=2",        "--set", "pipeline.replicas=2",
      "--set", "pipeline.microbatches=6", "--set", "pipeline.schedule=1f1b",
      "--set", "training.recompute=full"};
  const auto planned = simulated(settings);
  const TempFolder folder;
  for (const char* trainer : {"torchtitan", "torchtitan-0.2", "deepspeed"}) {
    INFO(trainer);
    const auto file = (folder.path() / trainer).string();
    std::vector<std::string> words{"export", scenario, "--costs", costs,
                                   "--for",  trainer,  "-o",      file};
    words.insert(words.end(), settings.begin(), settings.end());
    const auto result = run_program(words);
    CAPTURE(result.err);
    REQUIRE(result.exit_code == 0);
    CHECK(simulated({"--cut", file, "--set", "pipeline.replicas=2"}) == planned);
    CHECK(simulated({"--set", "pipeline.ranks=4", "--set", "pipeline.replicas=1"}) != planned);
  }
}

TEST_CASE("export lists unsupported features of a trainer, and exits with 1", "[cli][export]") {
  const std::vector<std::string> words{"export", scenario,    "--costs", costs,
                                       "--for",  "deepspeed", "--set",   "pipeline.schedule=gpipe"};
  const auto refused = run_program(words);
  CHECK(refused.exit_code == 1);
  CHECK(refused.out == "");
  CHECK(refused.err.find("pipeline.schedule=gpipe: its engine runs 1f1b") != std::string::npos);
  auto with_json = words;
  with_json.push_back("--json");
  const auto listed = run_program(with_json);
  CHECK(listed.exit_code == 1);
  const auto json = nlohmann::json::parse(listed.out);
  CHECK(json.at("text").is_null());
  CHECK(json.at("untold").size() >= 1);
  const auto megatron = run_program({"export", scenario, "--costs", costs, "--for", "megatron"});
  CHECK(megatron.exit_code == 1);
  CHECK(megatron.err.find("model.kind=gpt") != std::string::npos);
}

TEST_CASE("plan says which files it does not write, and which modules it does not count",
          "[cli][export]") {
  const TempFolder folder;
  const auto planned = [&](const std::string& model, const std::string& gpus) {
    return run_program({"plan", "--model", model, "--cluster",
                        PIPEWRIGHT_SOURCE_DIR "/scenarios/clusters/h100-sxm.json", "--gpus", gpus,
                        "--batch", "16", "--pipeline", "2", "--schedule", "1f1b", "--zero", "1",
                        "-o", (folder.path() / "out").string()});
  };
  const auto llama = planned("llama3-8b", "8");
  CAPTURE(llama.err);
  CHECK(llama.exit_code == 0);
  CHECK(std::filesystem::exists(folder.path() / "out" / "megatron.txt"));
  CHECK(llama.err.find("torchtitan_plan.py is not written: training.zero=1: ") !=
        std::string::npos);
  CHECK(planned(PIPEWRIGHT_TEST_DATA_DIR "/models/deepseek-v3.json", "8")
            .err.find("multi-token-prediction modules (1)") != std::string::npos);
}

TEST_CASE("--cut rejects a missing file, and one without a valid plan", "[cli][export]") {
  const TempFolder folder;
  const auto bad = folder.write("ds.json", R"({"pipeline": {"stages": "four"}})").string();
  const auto result = run_program({"simulate", scenario, "--costs", costs, "--cut", bad});
  CHECK(result.exit_code == 2);
  CHECK(result.err.find("ds.json:1:15: /pipeline/stages: a whole number of at least 1") !=
        std::string::npos);
  const auto none = run_program({"simulate", scenario, "--costs", costs, "--cut", "nowhere.toml"});
  CHECK(none.exit_code == 2);
  CHECK(none.err.find("nowhere.toml: cannot be read") != std::string::npos);
}

}  // namespace export_command_test
