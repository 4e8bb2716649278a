#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/support/program.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "support/catch.hpp"

namespace plan_command_test {

using namespace pipewright;
using test::run_program;
using test::TempFolder;

const std::string clusters = PIPEWRIGHT_SOURCE_DIR "/scenarios/clusters/";
const std::string a100 = clusters + "a100-80gb.json", h100 = clusters + "h100-sxm.json";

TEST_CASE("plan --json: the best plans, what was spared, and a scenario of each",
          "[cli][planner]") {
  const auto result = run_program({"plan", "--model", "gpt3-175b", "--cluster", a100, "--batch",
                                   "1536", "--gpus", "1024", "--top", "4", "--json"});
  REQUIRE(result.exit_code == 0);
  const auto json = nlohmann::json::parse(result.out);
  CHECK(json.at("plans").size() == 4);
  CHECK(json.at("candidates").get<int>() ==
        json.at("pruned").get<int>() + json.at("simulated").get<int>());
  CHECK(json.contains("seconds"));
  double before = 0;
  for (const auto& plan : json.at("plans")) {
    CHECK(plan.at("iteration_s").get<double>() >= before);
    before = plan.at("iteration_s");
    CHECK(plan.at("least_s").get<double>() <= before);
    CHECK(plan.at("tokens_per_s").get<double>() == Approx(1536 * 2048 / before));
    CHECK(plan.at("mfu").get<double>() > 0.2);
    CHECK(plan.at("mfu").get<double>() < 1);
    CHECK(plan.at("peak_bytes").get<double>() <= 85899345920.0);
    CHECK(plan.at("tensor").get<int>() * plan.at("pipeline").get<int>() *
              plan.at("data").get<int>() ==
          1024);
    CHECK(plan.at("scenario").at("pipeline").at("ranks") == plan.at("pipeline"));
  }
  CHECK(!json.at("plans")[0].at("change_to_next").get<std::string>().empty());
  CHECK(json.at("plans")[3].at("change_to_next") == "");
  CHECK(json.at("too_large_but_faster").at("fits") == false);
}

TEST_CASE("the plan's scenario is simulated in the plan's time", "[cli][planner]") {
  const TempFolder folder;
  for (const char* model : {"gpt3-175b", "mixtral-8x7b", "llama3-70b"})
    for (const char* pipeline : {"1", "4", "8"}) {
      CAPTURE(model, pipeline);
      const auto out = folder.path() / fmt::format("{}-{}", model, pipeline);
      const auto found =
          run_program({"plan", "--model", model, "--cluster", h100, "--batch", "256", "--pipeline",
                       pipeline, "--top", "1", "--json", "-o", out.string()});
      const auto json = nlohmann::json::parse(found.out);
      if (found.exit_code == 1) {  // too large for a device
        CHECK(json.at("smallest").at("fits") == false);
        CHECK(!std::filesystem::exists(out));
        continue;
      }
      const auto simulated = run_program({"simulate", (out / "scenario.json").string(), "--costs",
                                          (out / "costs.json").string(), "--json"});
      REQUIRE(simulated.exit_code == 0);
      CHECK(nlohmann::json::parse(simulated.out).at("iteration_s").get<double>() ==
            Approx(json.at("plans")[0].at("iteration_s").get<double>()).epsilon(1e-12));
      const auto checked = run_program({"schedule", "--check", (out / "schedule.csv").string()});
      CHECK(checked.exit_code == 0);
      CHECK(std::filesystem::exists(out / "megatron.txt"));
    }
}

TEST_CASE("plan says what is wrong and what would be right", "[cli][planner]") {
  const auto error_of = [](std::vector<std::string> words) {
    words.insert(words.begin(), "plan");
    const auto result = run_program(words);
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK(error_of({"--model", "lama3-70b", "--cluster", h100, "--batch", "64"})
            .find("did you mean \"llama3-70b\"") != std::string::npos);
  CHECK(error_of({"--model", "llama3-8b", "--cluster", h100, "--batch", "64", "--gpus", "20"})
            .find("--gpus: 20 are not whole nodes of 8: 16 or 24 would be") != std::string::npos);
  CHECK(error_of({"--model", "llama3-8b", "--cluster", h100, "--batch", "7", "--gpus", "8",
                  "--tensor", "1", "--pipeline", "1"})
            .find("nothing divides a batch of 7 among 8 GPUs") != std::string::npos);
  const TempFolder folder;
  auto text = plan::JsonDocument::read(h100).root();
  text["device"].erase("flops_per_s");
  const auto file = folder.write("cluster.json", text.dump());
  CHECK(error_of({"--model", "llama3-8b", "--cluster", file.string(), "--batch", "64"})
            .find("device.flops_per_s is not known") != std::string::npos);
}

TEST_CASE("a plan that fits nowhere names the smallest", "[cli][planner]") {
  const auto result = run_program(
      {"plan", "--model", "llama3-405b", "--cluster", h100, "--batch", "8", "--gpus", "8"});
  CHECK(result.exit_code == 1);
  CHECK(result.out.find("No plan fits. The smallest is tp 8") != std::string::npos);
}

}  // namespace plan_command_test
