#include <nlohmann/json.hpp>

#include "cli/support/program.hpp"
#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "support/catch.hpp"

namespace commands_test {

using namespace pipewright;
using nlohmann::json;
using test::run_program;
using test::TempFolder;

TEST_CASE("Every command has help with an example", "[cli]") {
  for (const char* command : {"run", "profile", "partition", "schedule", "topology", "simulate",
                              "sweep", "train", "save", "compare", "convert"}) {
    const auto result = run_program({command, "--help"});
    CHECK(result.exit_code == 0);
    CHECK(result.out.find("Example") != std::string::npos);
    CHECK(result.out.find("--json") != std::string::npos);
  }
}

TEST_CASE("schedule: CSV of 1F1B, and lowered", "[cli][schedule]") {
  const std::vector<std::string> base{"schedule", "1f1b", "--ranks", "2", "--microbatches", "2"};
  CHECK(run_program(base).out == "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  auto lowered = base;
  lowered.emplace_back("--lower");
  CHECK(run_program(lowered).out ==
        "0LOAD0,0F0,0SEND_F0,0LOAD1,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0STEP\n"
        "1RECV_F0,1LOAD0,1F0,1B0,1SEND_B0,1RECV_F1,1LOAD1,1F1,1B1,1SEND_B1,1STEP\n");
}

TEST_CASE("schedule --torch prints torch's own lowering, with sharded stages", "[cli][schedule]") {
  const std::vector<std::string> base{"schedule",       "1f1b", "--ranks", "2",
                                      "--microbatches", "1",    "--torch"};
  CHECK(run_program(base).out ==
        "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n"
        "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1RESHARD\n");
  auto recomputed = base;
  recomputed.emplace_back("--recompute");
  CHECK(run_program(recomputed).exit_code == 2);  // torch's format cannot express it
}

TEST_CASE("schedule --json: times and activations for equal stages", "[cli][schedule]") {
  const auto result = run_program(
      {"schedule", "1f1b", "--ranks", "4", "--microbatches", "8", "--costs", "1,1,1", "--json"});
  REQUIRE(result.exit_code == 0);
  const auto answer = json::parse(result.out);
  CHECK(answer["ranks"].size() == 4);
  CHECK(answer["iteration_time"] == 33);  // (M + P - 1) (F + I + W)
  CHECK(answer["bubble"] == json({9, 9, 9, 9}));
  CHECK(answer["peak_activations"] == json({4, 3, 2, 1}));
}

TEST_CASE("schedule --check proves that a file is sound, or shows why not", "[cli][schedule]") {
  const TempFolder folder;
  const auto good = folder.write("good.csv", "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  CHECK(run_program({"schedule", "--check", good.string()}).exit_code == 0);
  const auto bad = folder.write("bad.csv", "0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n");
  const auto result = run_program({"schedule", "--check", bad.string()});
  CHECK(result.exit_code == 1);
  CHECK(result.err.find("rank 1, action 1B1") != std::string::npos);
  CHECK(run_program({"schedule", "zigzag", "--ranks", "2", "--microbatches", "2"}).exit_code == 2);
  CHECK(
      run_program({"schedule", "1f1b", "--ranks", "2", "--microbatches", "2", "--costs", "1,-1,1"})
          .exit_code == 2);
}

TEST_CASE("profile -o writes costs that simulate accepts, also for another plan",
          "[cli][profile]") {
  const TempFolder folder;
  const auto costs = (folder.path() / "costs.json").string();
  REQUIRE(run_program(test::small_gpt("profile", {"--over", "0", "-o", costs})).exit_code == 0);
  const auto read = plan::layer_costs_from_json(plan::JsonDocument::read(costs));
  CHECK(read.layers.front().name == "embedding");
  CHECK(read.layers.front().input_gradient.value == 0);
  CHECK(read.layers[1].parameters.value == 4 * 12'704);
  CHECK(read.layers[1].activation.value > 0);

  const auto trace = folder.path() / "t.json", svg = folder.path() / "t.svg";
  const auto result =
      run_program(test::small_gpt("simulate", {"--costs", costs, "--set", "pipeline.ranks=3",
                                               "--trace", trace.string(), "--svg", svg.string()}));
  CHECK(result.exit_code == 0);
  CHECK(result.out.find("rank     busy ms") != std::string::npos);
  CHECK(std::filesystem::exists(trace));
  CHECK(std::filesystem::exists(svg));

  const auto compared = run_program({"compare", trace.string(), trace.string(), "--json"});
  REQUIRE(compared.exit_code == 0);
  const auto comparison = json::parse(compared.out);
  CHECK(comparison["error_percent"]["iteration_s"] == 0);
  CHECK(comparison["actions"]["F"]["predicted_count"] == 3 * 4);
  CHECK(comparison["actions"]["F"]["error_percent"] == 0);
  CHECK(comparison["actions"]["RECV_B moving"]["error_percent"] == 0);
}

TEST_CASE(
    "profile measures layers with the scenario's tensor parallelism; other sizes are rejected",
    "[cli][profile]") {
  const test::TempFolder folder;
  const auto whole = (folder.path() / "whole.json").string();
  const auto halves = (folder.path() / "halves.json").string();
  REQUIRE(run_program(test::small_gpt("profile", {"--over", "0", "-o", whole})).exit_code == 0);
  const auto profiled = run_program(
      test::small_gpt("profile", {"--over", "0", "-o", halves, "--set", "pipeline.tensor=2"}));
  REQUIRE(profiled.exit_code == 0);
  CHECK(profiled.out.find("one of 2 tensor-parallel ranks of each layer") != std::string::npos);
  const auto costs = plan::layer_costs_from_json(plan::JsonDocument::read(halves));
  CHECK(costs.tensor == 2);
  CHECK(costs.layers[1].tensor_all_reduces.times == 2);
  const auto simulated = [&](const std::string& file, const std::string& tensor) {
    return run_program(
        test::small_gpt("simulate", {"--costs", file, "--set", "pipeline.tensor=" + tensor}));
  };
  const std::string shared_out = "divided equally among 2 tensor-parallel ranks";
  CHECK(simulated(halves, "2").exit_code == 0);
  CHECK(simulated(halves, "2").out.find(shared_out) == std::string::npos);
  CHECK(simulated(whole, "2").out.find(shared_out) != std::string::npos);
  const auto refused = simulated(halves, "1");
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("partitioned among 2 ranks along tensor, but pipeline.tensor is 1") !=
        std::string::npos);
}

TEST_CASE(
    "profile shows the parts of its times, and --kernels writes the kernels below the actions",
    "[cli][profile]") {
  const TempFolder folder;
  const auto kernels = (folder.path() / "kernels.json").string();
  const auto native = (folder.path() / "kernels.pwt").string();
  const auto result =
      run_program(test::small_gpt("profile", {"--over", "0", "--json", "--kernels", kernels}));
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const auto costs = plan::Json::parse(result.out);
  const auto& work = costs["work"];
  CHECK(work["source"] == "the host's clock");
  CHECK(work["on_device"] == false);
  CHECK(work["lost"]["dropped"] == 0);
  bool found = false;
  for (const auto& part : work["parts"])
    if (part["layer"] == "block0" && part["part"] == "W") {
      found = true;
      CHECK(part["device_s"] > 0);
      CHECK(part["launch_bound"] == false);
      CHECK(part["kernels"].size() > 0);
    }
  CHECK(found);
  // People and the window read this format: only the actions can be compared.
  REQUIRE(run_program({"convert", kernels, native}).exit_code == 0);
  const auto compared = run_program({"compare", native, kernels, "--json"});
  REQUIRE(compared.exit_code == 0);
  CHECK(json::parse(compared.out)["actions"]["F"]["predicted_count"] == 2);
}

TEST_CASE("train --kernels writes the kernels of each action of a step, by rank", "[cli][train]") {
  const TempFolder folder;
  const auto kernels = (folder.path() / "kernels.pwt").string();
  const auto result = run_program(test::small_gpt("train", {"--kernels", kernels, "--json"}));
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const auto answer = json::parse(result.out);
  CHECK(answer["recording_overhead"].is_number());
  int forwards = 0;
  for (const auto& work : answer["work"])
    if (work["actions"] == "F") {
      forwards += work["times"].get<int>();
      CHECK(work["kernels"] > 0);
    }
  CHECK(forwards == 2 * 4);
  const auto compared = run_program({"compare", kernels, kernels, "--json"});
  REQUIRE(compared.exit_code == 0);
  CHECK(json::parse(compared.out)["actions"]["F"]["measured_count"] == 2 * 4);

  const auto replicas =
      run_program(test::small_gpt("train", {"--kernels", kernels, "--set", "pipeline.replicas=2"}));
  CHECK(replicas.exit_code == 2);
  CHECK(replicas.err.find("pipeline.replicas=1 is needed") != std::string::npos);
}

TEST_CASE("Costs of another model are rejected", "[cli][simulate]") {
  const TempFolder folder;
  const auto costs = (folder.path() / "costs.json").string();
  REQUIRE(run_program(test::small_gpt("profile", {"--over", "0", "-o", costs})).exit_code == 0);
  const auto result = run_program({"simulate", test::gpt_scenario, "--costs", costs});
  CHECK(result.exit_code == 2);
}

TEST_CASE("train prints loss and rate, and verifies if requested", "[cli][train]") {
  const auto result = run_program(test::small_gpt("train", {"--verify", "--json"}));
  REQUIRE(result.exit_code == 0);
  const auto answer = json::parse(result.out);
  CHECK(answer["loss"].size() == 4);
  CHECK(answer["verify"]["bit_identical"] == true);
  CHECK(answer["tokens_per_s"] > 0);
}

}  // namespace commands_test
