#include <nlohmann/json.hpp>

#include "cli/support/program.hpp"
#include "pipewright/plan/cluster/cluster.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "support/catch.hpp"

namespace calibrate_command_test {

using namespace pipewright;
using test::run_program;
using test::TempFolder;

const std::string clusters = PIPEWRIGHT_SOURCE_DIR "/scenarios/clusters/";
const std::string a100 = clusters + "a100-80gb.json";

const std::string runs =
    "id,gpus,tp,dp,pp,global_batch,micro_batch,layers,hidden,heads,seq,iter_ms,color\n"
    "a,8,8,1,1,8,2,24,2048,16,1024,400,red\n"
    "b,8,4,1,2,8,2,24,2048,16,1024,250,red\n"
    "c,8,1,8,1,32,2,24,2048,16,1024,310,red\n"
    "d,8,2,4,1,32,4,24,2048,16,1024,330,red\n";

const std::string planned =
    "id,gpus,tp,dp,pp,global_batch,micro_batch,layers,hidden,heads,seq,iter_ms\n"
    "p,8,2,1,4,8,2,24,2048,16,1024,\n"
    "q,8,8,1,1,8,4,24,2048,16,1024,230\n";

TEST_CASE("calibrate --json reports the fit and its prediction errors", "[cli][calibrate]") {
  const TempFolder folder;
  const auto file = folder.write("runs.csv", runs);
  const auto result = run_program({"calibrate", a100, "--runs", file.string(), "--json"});
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.find("unknown columns are ignored: color") != std::string::npos);
  const auto json = nlohmann::json::parse(result.out);
  CHECK(json.at("rows") == 4);
  CHECK(json.at("ignored_columns") == nlohmann::json{"color"});
  for (const char* key : {"mean_abs_error_percent", "median_abs_error_percent",
                          "p90_abs_error_percent", "worst_percent", "regret_percent", "spearman"}) {
    CHECK(json.contains(key));
    CHECK(json.at("physics_only").contains(key));
  }
  CHECK(json.at("worst").size() == 4);
  const auto& launch = json.at("constants").at("layer_launch_s");
  CHECK(launch.at("value").get<double>() > 0);
  CHECK(launch.at("uncertainty_percent").get<double>() > 0);
}

TEST_CASE("calibrate --predict predicts other runs, measured or not, and writes the cluster",
          "[cli][calibrate]") {
  const TempFolder folder;
  const auto file = folder.write("runs.csv", runs), next = folder.write("next.csv", planned);
  const auto out = folder.path() / "calibrated.json";
  const auto result = run_program({"calibrate", a100, "--runs", file.string(), "--predict",
                                   next.string(), "-o", out.string(), "--json"});
  REQUIRE(result.exit_code == 0);
  const auto json = nlohmann::json::parse(result.out);
  CHECK(json.at("rows") == 1);  // the run whose time is known
  CHECK(json.at("runs").size() == 2);
  CHECK(json.at("runs").at(0).at("predicted_s").get<double>() > 0);
  const auto cluster = plan::cluster_from_json(plan::JsonDocument::read(out));
  CHECK(cluster.machine->constants.layer_launch_s ==
        json.at("constants").at("layer_launch_s").at("value").get<double>());
  const auto table =
      run_program({"calibrate", a100, "--runs", file.string(), "--predict", next.string()});
  CHECK(table.exit_code == 0);
  CHECK(table.out.find("runs predicted") != std::string::npos);
  CHECK(table.out.find("\npredicted\np ") != std::string::npos);
}

TEST_CASE("calibrate --halves predicts each half from the other", "[cli][calibrate]") {
  const TempFolder folder;
  const auto file = folder.write("runs.csv", runs);
  const auto result =
      run_program({"calibrate", a100, "--runs", file.string(), "--halves", "2", "--json"});
  REQUIRE(result.exit_code == 0);
  const auto halves = nlohmann::json::parse(result.out).at("across_halves");
  CHECK(halves.at("rows") == 8);
  CHECK(halves.at("splits") == 2);
}

TEST_CASE("calibrate --predict without runs uses the cluster's constants unchanged",
          "[cli][calibrate]") {
  const TempFolder folder;
  const auto file =
      folder.write("wanted.csv",
                   "id,gpu,gpus,tp,dp,pp,global_batch,micro_batch,layers,hidden,heads,seq,iter_ms,"
                   "peak_memory_gb,mem_rank\n"
                   "a,A100-80GB,8,4,1,2,8,2,24,2048,16,1024,250,12,0\n"
                   "b,NVIDIA H100-SXM5-80GB,8,4,1,2,8,2,24,2048,16,1024,250,12,last\n"
                   "c,A100,8,3,1,2,8,2,24,2048,16,1024,,,\n");
  const auto result = run_program({"calibrate", a100, "--predict", file.string(), "--json"});
  REQUIRE(result.exit_code == 0);
  const auto json = nlohmann::json::parse(result.out);
  CHECK(json.at("learnt_runs") == 0);
  CHECK(json.at("time").at("rows") == 1);
  CHECK(json.at("time").at("worst").at(0).at("id") == "a");
  CHECK(json.at("memory").at("rows") == 2);  // of any GPU
  const auto& refused = json.at("refused");
  REQUIRE(refused.size() == 2);
  CHECK(refused.at(0).at("id") == "c");
  CHECK(refused.at(0).at("part") == "row");
  CHECK(refused.at(1).at("part") == "time");
  CHECK(refused.at(1).at("reason") == "gpu is H100, but the cluster has A100");
  const auto& first = json.at("runs").at(0);
  CHECK(first.at("ranks").size() == 2);
  CHECK(first.at("memory_rank") == 0);
  CHECK(first.at("peak_bytes") == first.at("ranks").at(0).at("peak_bytes"));
  CHECK_FALSE(json.at("runs").at(1).contains("predicted_s"));
  const auto& memory = first.at("memory");
  CHECK(memory.at("fragmentation_bytes") > 0);
  CHECK(memory.at("context_bytes") > 0);
  const auto table = run_program({"calibrate", a100, "--predict", file.string()});
  CHECK(table.out.find("\nmemory, GiB") != std::string::npos);
  CHECK(table.out.find("\nrefused\nline 4     row       " + file.string()) != std::string::npos);
}

TEST_CASE("calibrate rejects invalid input with exit code 2", "[cli][calibrate]") {
  const TempFolder folder;
  const auto bad = folder.write("bad.csv", runs + "e,8,3,1,2,8,2,24,2048,16,1024,1,red\n");
  const auto result = run_program({"calibrate", a100, "--runs", bad.string()});
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK(result.err.find("bad.csv:6:3: gpus is 8, but tp 3 × dp 1 × pp 2 are 6 devices") !=
        std::string::npos);
  CHECK(run_program({"calibrate", a100})
            .err.find("give --runs FILE to learn from, or --predict FILE") != std::string::npos);
  CHECK(run_program({"calibrate", a100, "--runs", "nowhere.csv"}).exit_code == 2);
}

TEST_CASE("The shipped clusters can be read, and cite the sources of their figures",
          "[cli][calibrate]") {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(clusters)) {
    CAPTURE(entry.path().string());
    const auto cluster = plan::cluster_from_json(plan::JsonDocument::read(entry.path()));
    CHECK_FALSE(cluster.machine->sources.empty());
    CHECK(cluster.device.flops_per_s > 0);
    CHECK(cluster.device.memory_bandwidth_per_s > 0);
    CHECK(cluster.device.memory.value > 0);
    ++count;
  }
  CHECK(count == 12);
}

}  // namespace calibrate_command_test
