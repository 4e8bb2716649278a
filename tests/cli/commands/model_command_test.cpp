#include <nlohmann/json.hpp>

#include "cli/support/program.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/model/model.hpp"
#include "support/catch.hpp"

namespace model_command_test {

using namespace pipewright;
using test::run_program;
using test::TempFolder;

const std::string models = PIPEWRIGHT_TEST_DATA_DIR "/models/";

TEST_CASE("model prints equal layers in one row, and their total", "[cli][model]") {
  const auto result = run_program({"model", models + "deepseek-v3.json"});
  REQUIRE(result.exit_code == 0);
  CHECK(result.out.starts_with("deepseek-ai/DeepSeek-V3: 671026419200 parameters, "));
  CHECK(result.out.find("layer0 … layer2") != std::string::npos);
  CHECK(result.out.find("layer3 … layer60") != std::string::npos);
  CHECK(result.out.find("without multi-token prediction") != std::string::npos);
}

TEST_CASE("model --json lists each layer, partitioned as requested", "[cli][model]") {
  const auto result = run_program({"model", models + "llama-3-8b.json", "--tensor", "4",
                                   "--sequence-parallel", "--context", "2", "--json"});
  REQUIRE(result.exit_code == 0);
  const auto json = nlohmann::json::parse(result.out);
  CHECK(json.at("layers").size() == 34);
  CHECK(json.at("total").at("parameters") == 8'030'261'248);
  CHECK(json.at("sequence") == 4096);
  const auto& layer = json.at("layers").at(1);
  CHECK(layer.at("weight_bytes") == 2 * (218'103'808 / 4 + 8192));
  CHECK(layer.at("product_flops") == 2.0 * 2048 * 218'103'808 / 4);
  CHECK(layer.at("kept_bytes").at("full") == 2 * 2048 * 4096 / 4);
}

TEST_CASE("model uses Megatron's arguments, unless options override them", "[cli][model]") {
  const auto file = models + "megatron-345m.sh";
  const auto said = nlohmann::json::parse(run_program({"model", file, "--json"}).out);
  CHECK(said.at("tensor") == 2);
  CHECK(said.at("microbatch") == 4);
  const auto told = nlohmann::json::parse(
      run_program({"model", file, "--tensor", "8", "--microbatch", "1", "--json"}).out);
  CHECK(told.at("tensor") == 8);
  CHECK(told.at("microbatch") == 1);
}

TEST_CASE("model takes --sequence for arguments without --seq-length", "[cli][model]") {
  const TempFolder folder;
  const auto file = folder.write(
      "args.sh", "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --vocab-size 100");
  const auto missing = run_program({"model", file.string()});
  CHECK(missing.exit_code == 2);
  CHECK(missing.err.find("--seq-length: is missing") != std::string::npos);
  const auto given = run_program({"model", file.string(), "--sequence", "512", "--json"});
  REQUIRE(given.exit_code == 0);
  CHECK(nlohmann::json::parse(given.out).at("sequence") == 512);
}

const std::string hybrid =
    "--hybrid-layer-pattern MEM*EMEM*E --hidden-size 64 --num-attention-heads 4 --num-experts 4 "
    "--vocab-size 100 --seq-length 128 --bf16";

TEST_CASE("model and plan reject a hybrid, which only plan --as-is counts", "[cli][model]") {
  const TempFolder folder;
  const auto file = folder.write("args.sh", hybrid).string();
  const std::string cluster = PIPEWRIGHT_SOURCE_DIR "/scenarios/clusters/h100-sxm.json";
  const auto counted = run_program({"model", file});
  CHECK(counted.exit_code == 2);
  CHECK(counted.err.find("--hybrid-layer-pattern MEM*EMEM*E: a hybrid's layers are counted only by "
                         "plan --as-is") != std::string::npos);
  const auto searched =
      run_program({"plan", "--model", file, "--cluster", cluster, "--gpus", "2", "--batch", "8"});
  CHECK(searched.exit_code == 2);
  CHECK(searched.err == counted.err);
  const auto kept = run_program(
      {"plan", "--model", file, "--cluster", cluster, "--gpus", "1", "--as-is", "--json"});
  INFO(kept.err);
  CHECK(nlohmann::json::parse(kept.out).contains("memory"));
}

TEST_CASE("model names options that are unknown or not counted", "[cli][model]") {
  const TempFolder folder;
  const auto file = folder.write("args.sh",
                                 "--num-layers 2 --hidden-size 64 --num-attention-heads 4 "
                                 "--vocab-size 100 --seq-length 128 --squared-relu --new-thing 3");
  const auto result = run_program({"model", file.string()});
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("args.sh: --new-thing is unknown") != std::string::npos);
  CHECK(result.err.find("args.sh: --squared-relu changes what layers compute") !=
        std::string::npos);
}

TEST_CASE("model -o writes a model file", "[cli][model]") {
  const TempFolder folder;
  const auto out = folder.path() / "gpt2.json";
  REQUIRE(run_program({"model", models + "gpt2.json", "-o", out.string()}).exit_code == 0);
  CHECK(plan::model_from_json(plan::JsonDocument::read(out)).layers.size() == 14);
}

TEST_CASE("model rejects files and sizes with an error message and exit code 2", "[cli][model]") {
  const TempFolder folder;
  const auto bad = folder.write("config.json", "{\"model_type\": \"qwen4\"}");
  const auto unknown = run_program({"model", bad.string()});
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.err.find("config.json:1:2: /model_type: \"qwen4\" is not known here, did you mean "
                         "\"qwen2\"?") != std::string::npos);
  const auto uneven = run_program({"model", models + "llama-3-8b.json", "--tensor", "5"});
  CHECK(uneven.exit_code == 2);
  CHECK(uneven.err.find("a tensor size of 5 does not divide 32 heads, 8 of them of keys and "
                        "values; 4 or 8 would do") != std::string::npos);
  CHECK(run_program({"model", "nowhere.json"}).exit_code == 2);
  CHECK(run_program({"model"}).exit_code == 2);
}

}  // namespace model_command_test
