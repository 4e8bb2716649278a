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
