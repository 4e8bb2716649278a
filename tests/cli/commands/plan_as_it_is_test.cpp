#include <nlohmann/json.hpp>

#include "cli/support/program.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "support/catch.hpp"

namespace plan_as_it_is_test {

using namespace pipewright;
using test::run_program;
using test::TempFolder;
using Json = nlohmann::json;

const std::string h100 = PIPEWRIGHT_SOURCE_DIR "/scenarios/clusters/h100-sxm.json";

/// Returns the arguments of 405B as trained on 2048 H100 in 14.22 s per iteration (MLPerf Training
/// 5.0).
std::string llama_405b() {
  return plan::read_file(PIPEWRIGHT_SOURCE_DIR "/scenarios/megatron/llama3.1-405b.yaml");
}

const std::string row_405b =
    "id,gpu,gpus,tp,dp,pp,cp,global_batch,micro_batch,layers,hidden,heads,kv_heads,ffn,gated,vocab,"
    "vocab_padded,seq,layers_per_virtual_stage,embedding_counts_as_layer,loss_counts_as_layer,"
    "sequence_parallel,zero,overlap_grad_reduce,overlap_param_gather,tp_comm_overlap,recompute,"
    "defer_embedding_wgrad,precision,fp8_recipe,fp8_param_gather,position,norm,tied,bias,"
    "attention_backend,transformer_impl,gradient_accumulation_fusion,cross_entropy_fusion\n"
    "405b,H100,2048,8,16,8,2,1152,1,126,16384,128,8,53248,yes,128256,129024,8192,2,yes,yes,yes,1,"
    "yes,yes,yes,none,yes,fp8-hybrid+bf16,delayed,yes,rope,rmsnorm,no,no,auto,transformer_engine,"
    "yes,native\n";

struct Planned {
  int exit_code = -1;
  std::string out, err;
  Json json() const { return Json::parse(out); }
};

Planned as_it_is(const std::string& arguments, const std::string& gpus,
                 const std::vector<std::string>& more) {
  const TempFolder folder;
  const auto file = folder.path() / "args.yaml";
  plan::write_file(file, arguments);
  std::vector<std::string> words{"plan", "--model", file.string(), "--cluster",
                                 h100,   "--gpus",  gpus,          "--as-is"};
  words.insert(words.end(), more.begin(), more.end());
  const auto result = run_program(words);
  return {result.exit_code, result.out, result.err};
}

Json predicted(const std::string& row) {
  const TempFolder folder;
  const auto file = folder.path() / "runs.csv";
  plan::write_file(file, row);
  const auto result = run_program({"calibrate", h100, "--predict", file.string(), "--json"});
  INFO(result.out << result.err);
  REQUIRE(result.exit_code == 0);
  const Json json = Json::parse(result.out);
  REQUIRE(json.at("refused").empty());
  return json.at("runs").at(0);
}

TEST_CASE("plan --as-is and calibrate --predict agree on an equal run", "[cli][planner]") {
  const Planned planned = as_it_is(llama_405b(), "2048", {"--json"});
  INFO(planned.err);
  REQUIRE(planned.exit_code == 0);
  const Json plan = planned.json(), row = predicted(row_405b);
  CHECK(plan.at("iteration_s") == row.at("predicted_s"));
  CHECK(plan.at("memory") == row.at("memory"));
  CHECK(plan.at("memory").at("allocated_bytes") == row.at("peak_bytes"));
  CHECK(plan.at("fullest_rank") == row.at("memory_rank"));
  REQUIRE(plan.at("ranks").size() == row.at("ranks").size());
  for (std::size_t rank = 0; rank < plan.at("ranks").size(); ++rank) {
    const Json& own = plan.at("ranks").at(rank);
    CHECK(own.at("rank") == rank);
    CHECK(own.at("peak_bytes") == row.at("ranks").at(rank).at("peak_bytes"));
    CHECK(own.at("allocated_bytes") == row.at("ranks").at(rank).at("allocated_bytes"));
    double held = 0;
    for (const auto& [name, bytes] : own.at("holders").items())
      held += bytes.get<double>();
    CHECK(held == own.at("peak_bytes").get<double>());
    CHECK(own.at("forward_s").get<double>() + own.at("backward_s").get<double>() +
              own.at("end_s").get<double>() + own.at("waits_s").get<double>() ==
          Approx(plan.at("iteration_s").get<double>()));
    CHECK(own.at("waits_s").get<double>() >= 0);
  }
  CHECK(plan.at("ranks").at(0).at("stages") == Json{0, 8, 16, 24, 32, 40, 48, 56});
  CHECK(plan.at("ranks").at(0).at("layers") == 15);
  CHECK(plan.at("ranks").at(1).at("layers") == 16);
  CHECK(plan.at("fits") == true);
  CHECK(plan.at("refused").empty());
  CHECK(plan.at("assumed") == Json{"--vocab-size 128256, as meta-llama/Llama-3.1-405B has it"});
}

TEST_CASE("plan --as-is lists what it cannot predict, with reasons", "[cli][planner]") {
  const Json json =
      as_it_is(llama_405b() + "  --use-megatron-fsdp: true\n  --new-thing: 3\n", "2048", {"--json"})
          .json();
  REQUIRE(json.at("refused").size() == 2);
  CHECK(json.at("refused").at(0) ==
        Json{{"part", "memory"},
             {"option", "--use-megatron-fsdp"},
             {"reason", "weights are sharded, which is not supported"}});
  CHECK(json.at("refused").at(1).at("option") == "--new-thing");
  CHECK(json.at("iteration_s").is_number());
  CHECK_FALSE(json.contains("memory"));
  const Json predictions =
      as_it_is(llama_405b() + "  --mtp-num-layers: 1\n", "2048", {"--json"}).json();
  CHECK(predictions.at("iteration_s").is_null());
  CHECK(predictions.at("refused").at(0).at("part") == "time");
}

TEST_CASE("An optimizer other than adam is not timed as adam", "[cli][planner]") {
  const std::string arguments = llama_405b() + "  --optimizer: muon\n";
  const Json json = as_it_is(arguments, "2048", {"--json"}).json();
  CHECK(json.at("iteration_s").is_null());
  CHECK(
      json.at("refused").at(0) ==
      Json{{"part", "time"}, {"reason", "optimizer is muon: only the step of adam can be timed"}});
  CHECK(json.at("refused").at(1).at("reason").get<std::string>().find("only adam") !=
        std::string::npos);
  const TempFolder folder;
  const auto file = folder.write("args.yaml", arguments).string();
  const auto searched = run_program(
      {"plan", "--model", file, "--cluster", h100, "--gpus", "2048", "--batch", "1152"});
  CHECK(searched.exit_code == 2);
  CHECK(searched.err.find("args.yaml: --optimizer muon: plans are timed with adam only") !=
        std::string::npos);
}

TEST_CASE("plan --as-is reports a plan that does not fit, also in the table", "[cli][planner]") {
  const Planned small = as_it_is(llama_405b(), "2048", {});
  CHECK(small.exit_code == 0);
  CHECK(small.out.find("it fits 85.5 GB") != std::string::npos);
  const Planned large = as_it_is(llama_405b() + "  --micro-batch-size: 9\n", "2048", {});
  CHECK(large.exit_code == 1);
  CHECK(large.out.find("it does not fit 85.5 GB") != std::string::npos);
  const Planned searched = as_it_is(llama_405b(), "2048", {"--tensor", "4"});
  CHECK(searched.exit_code == 2);
  CHECK(searched.err.find(
            "--tensor: only valid for a search, but --as-is keeps the plan of the arguments") !=
        std::string::npos);
}

}  // namespace plan_as_it_is_test
