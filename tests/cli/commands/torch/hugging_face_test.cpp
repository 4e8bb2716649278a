// From a large model's name to a folder that transformers loads: a small model of its kind is made,
// trained as a pipeline with tensor parallelism, saved, and trained further, by the commands of
// docs/your-model.md.

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/support/program.hpp"
#include "support/catch.hpp"

namespace hugging_face_test {

using namespace pipewright;
using nlohmann::json;
using test::Result;
using test::run_program;
using test::TempFolder;
using Words = std::vector<std::string>;

const std::string source = PIPEWRIGHT_SOURCE_DIR "/";

Result done(const Words& words) {
  Result result = run_program(words);
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  return result;
}

/// Writes tokens below 128, of two bytes each.
void write_tokens(const TempFolder& folder) {
  std::string tokens;
  for (const char byte : test::text_of(source + "scenarios/gpt-text/text.txt").substr(0, 5000)) {
    tokens += static_cast<char>(byte & 0x7f);
    tokens += '\0';
  }
  folder.write("tokens.bin", tokens);
}

std::string write_scenario(const TempFolder& folder, const std::string& model,
                           const json& more = json::object()) {
  json scenario = json::parse(test::text_of(source + "scenarios/gpt-text/scenario.json"));
  scenario.erase("$schema");
  scenario["name"] = model;
  scenario["model"] = {{"kind", "hf"}, {"path", model}, {"sequence", 32}};
  scenario["model"].update(more);
  scenario["data"] = {{"kind", "tokens"}, {"path", "tokens.bin"}};
  scenario["pipeline"]["microbatches"] = 2;
  scenario["pipeline"]["tensor"] = 2;
  scenario["pipeline"]["partition"] = "uniform";
  scenario["training"]["steps"] = 3;
  return folder.write(model + ".json", scenario.dump()).string();
}

double loss_at(const Result& trained, const char* when) {
  const json losses = json::parse(trained.out).at("loss");
  return when == std::string("first") ? losses.front() : losses.back();
}

TEST_CASE(
    "A small model with a large model's architecture is created, trained, saved and trained "
    "further",
    "[cli][job]") {
  const TempFolder folder;
  const std::string small = (folder.path() / "small").string();
  const auto made = done({"model", "--init", "llama3-70b", "--layers", "2", "--hidden", "64",
                          "--vocabulary", "128", "-o", small, "--json"});
  CHECK(json::parse(made.out).at("layers").size() == 4);
  write_tokens(folder);
  const std::string first = write_scenario(folder, "small");
  const std::string costs = (folder.path() / "costs.json").string();
  const std::string checkpoints = (folder.path() / "checkpoints").string();
  done({"profile", first, "--over", "0", "-o", costs});
  const auto trained =
      done({"train", first, "--costs", costs, "--verify", "--json", "--checkpoints", checkpoints});
  const std::string tuned = (folder.path() / "tuned").string();
  done({"save", first, "--checkpoints", checkpoints, "-o", tuned});
  CHECK(std::filesystem::exists(tuned + "/model.safetensors"));

  // Training continues from the weights of the first one on the same data: the loss keeps falling.
  const auto further = done({"train", write_scenario(folder, "tuned"), "--costs", costs, "--json"});
  CHECK(loss_at(further, "first") < loss_at(trained, "first") - 0.1);
}

TEST_CASE("The shipped folders are profiled, planned and trained with the bits of serial training",
          "[cli][job]") {
  for (const char* name : {"llama-tiny", "qwen3-moe-tiny"}) {
    INFO(name);
    const TempFolder out;
    const auto run = done({"run", source + "scenarios/" + name + "/scenario.json", "--set",
                           "training.steps=3", "--verify", "-o", (out.path() / "run").string()});
    CHECK(run.out.find("bit-identical to training without a pipeline") != std::string::npos);
  }
}

TEST_CASE("GPT-2 trains without its dropout, and its first and last stages share its embedding",
          "[cli][job]") {
  const TempFolder folder;
  write_tokens(folder);
  done({"model", "--init", "gpt2", "--layers", "2", "--hidden", "64", "--vocabulary", "128", "-o",
        (folder.path() / "small").string()});
  const auto refused = run_program({"train", write_scenario(folder, "small")});
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("model.dropout=true (config.json: \"resid_pdrop\": 0.1)") !=
        std::string::npos);
  const auto run = done({"run", write_scenario(folder, "small", {{"dropout", false}}), "--verify",
                         "-o", (folder.path() / "run").string()});
  CHECK(run.out.find("bit-identical to training without a pipeline") != std::string::npos);
}

TEST_CASE("save requires a model of Hugging Face", "[cli]") {
  const auto result = run_program({"save", test::gpt_scenario, "--checkpoints", "none", "-o", "x"});
  CHECK(result.exit_code == 2);
  CHECK(result.err.find("model.kind is gpt; only models of kind hf") != std::string::npos);
}

TEST_CASE("model --init reports what it cannot create", "[cli][model]") {
  const auto err = [](const Words& words) {
    const auto result = run_program(words);
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK(err({"model", "--init", "lama3-70b", "-o", "x"}).find("did you mean \"llama3-70b\"?") !=
        std::string::npos);
  CHECK(err({"model", "--init", "llama3-70b"}).find("the folder of --out") != std::string::npos);
  CHECK(err({"model", "--layers", "3", "c.json"}).find("need --init") != std::string::npos);
  CHECK(err({"model"}).find("a FILE is needed, or --init NAME") != std::string::npos);
}

TEST_CASE("A user's folder replaces the one of a shipped scenario", "[cli][job]") {
  const TempFolder folder;
  const std::string own = (folder.path() / "own").string();
  done({"model", "--init", "qwen3-8b", "--layers", "2", "--hidden", "32", "--vocabulary", "128",
        "-o", own});
  write_tokens(folder);
  const std::string costs = (folder.path() / "costs.json").string();
  const std::string svg = (folder.path() / "predicted.svg").string();
  const auto with_own = [&](Words words) {
    words.insert(words.begin() + 1, source + "scenarios/llama-tiny/scenario.json");
    for (const std::string& change :
         {"model.path=" + own, "data.path=" + (folder.path() / "tokens.bin").string(),
          std::string("pipeline.tensor=1"), std::string("training.steps=3")})
      words.insert(words.end(), {"--set", change});
    return done(words);
  };
  with_own({"profile", "--over", "0", "-o", costs});
  with_own({"simulate", "--costs", costs, "--svg", svg});
  CHECK(std::filesystem::exists(svg));
  const auto trained = with_own(
      {"run", "--costs", costs, "--verify", "-o", (folder.path() / "run").string(), "--json"});
  const json report = json::parse(trained.out);
  CHECK(report.at("verify").at("bit_identical") == true);
  CHECK(report.contains("error_percent"));
}

}  // namespace hugging_face_test
