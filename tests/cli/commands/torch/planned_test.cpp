// From the sizes of a Llama, and of a mixture of experts, to a searched plan, and from its scenario
// to a training with the bits of one without a pipeline: the commands of docs/planning.md.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/support/program.hpp"
#include "support/catch.hpp"

namespace planned_test {

using namespace pipewright;
using test::Result;
using test::run_program;
using test::TempFolder;
using Words = std::vector<std::string>;

const std::string source = PIPEWRIGHT_SOURCE_DIR "/";
const std::string config = "scenarios/llama-tokens/config.json";
const std::string mixture = "scenarios/mixture-tokens/config.json";
const std::string cluster = "scenarios/clusters/h100-sxm.json";

/// Writes the output of the page's `iconv`: each byte of a text as two.
std::string write_tokens(const TempFolder& folder) {
  std::string tokens;
  for (const char byte : test::text_of(source + "scenarios/gpt-text/text.txt")) {
    tokens += byte;
    tokens += '\0';
  }
  return folder.write("tokens.bin", tokens).string();
}

/// Returns the scenario of the best plan on four devices.
std::string planned(const TempFolder& folder, const Words& more, const std::string& model = config,
                    const std::string& tensor = "2") {
  const std::string out = (folder.path() / fmt::format("{}", fmt::join(more, ""))).string();
  Words words{"plan",   "--model",    source + model, "--cluster", source + cluster,
              "--gpus", "4",          "--batch",      "16",        "--microbatch",
              "2",      "--sequence", "64",           "--tensor",  tensor,
              "-o",     out};
  words.insert(words.end(), more.begin(), more.end());
  const Result result = run_program(words);
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  return out + "/scenario.json";
}

Result train(const std::string& scenario, const std::string& tokens, int steps, const Words& more) {
  const auto costs = std::filesystem::path(scenario).replace_filename("costs.json");
  Words words{"train",  scenario, "--costs", costs.string(),
              "--data", tokens,   "--set",   fmt::format("training.steps={}", steps)};
  words.insert(words.end(), more.begin(), more.end());
  return run_program(words);
}

TEST_CASE(
    "A plan that the search found for a small Llama with tensor 2 trains with the bits of serial "
    "training",
    "[cli][job]") {
  const TempFolder folder;
  const std::string tokens = write_tokens(folder);
  struct Search {
    Words words;
    int steps;
    std::vector<bool> processes;
  };
  for (const auto& [searched, steps, carriers] :
       {Search{{"--pipeline", "2"}, 4, {false, true}}, Search{{"--pipeline", "1"}, 1, {false}},
        Search{{"--pipeline", "2", "--schedule", "zb-h1"}, 1, {true}},
        Search{{"--pipeline", "1", "--zero", "3"}, 2, {false}}}) {
    const std::string scenario = planned(folder, searched);
    const auto json = nlohmann::json::parse(test::text_of(scenario));
    CHECK(json.at("pipeline").at("tensor") == 2);
    CHECK(json.at("training").at("precision") == "mixed");
    CHECK(json.at("training").at("fp32_gradients") == true);
    for (const bool processes : carriers) {
      Words more{"--verify"};
      if (processes)
        more.push_back("--processes");
      const Result result = train(scenario, tokens, steps, more);
      CAPTURE(searched, processes, result.out, result.err);
      CHECK(result.exit_code == 0);
      CHECK(result.out.find(
                fmt::format("verify: {0} of {0} losses and 57 of 57 parameter tensors (", steps)) !=
            std::string::npos);
    }
  }
}

TEST_CASE(
    "A plan that the search found for a small mixture of experts trains with the bits of serial "
    "training",
    "[cli][job]") {
  const TempFolder folder;
  const std::string scenario = planned(folder, {"--pipeline", "2"}, mixture);
  const Result result = train(scenario, write_tokens(folder), 2, {"--verify"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out.find("verify: 2 of 2 losses and 50 of 50 parameter tensors (") !=
        std::string::npos);
}

TEST_CASE(
    "A plan whose pipelines divide the experts among them trains with the bits of serial training",
    "[cli][job]") {
  const TempFolder folder;
  for (const bool processes : {false, true}) {
    const std::string stages = processes ? "1" : "2", tensor = processes ? "2" : "1";
    const std::string scenario =
        planned(folder, {"--pipeline", stages, "--expert", "2", "--zero", "1"}, mixture, tensor);
    const auto json = nlohmann::json::parse(test::text_of(scenario));
    CHECK(json.at("pipeline").at("expert") == 2);
    CHECK(json.at("training").at("zero") == 1);
    Words more{"--verify"};
    if (processes)
      more.push_back("--processes");
    const int steps = processes ? 1 : 2;
    const Result result = train(scenario, write_tokens(folder), steps, more);
    CAPTURE(processes, result.out, result.err);
    CHECK(result.exit_code == 0);
    CHECK(result.out.find(fmt::format("verify: {0} of {0} losses and 50 of 50 parameter tensors (",
                                      steps)) != std::string::npos);
  }
}

TEST_CASE("docs/planning.md shows these commands", "[cli]") {
  const std::string page = test::text_of(source + "docs/planning.md");
  for (const std::string& command : Words{
           "$ iconv -f latin1 -t utf-16le scenarios/gpt-text/text.txt > tokens.bin",
           "$ pipewright plan --model " + config + " --cluster " + cluster +
               " --gpus 4 --batch 16 --microbatch 2 --sequence 64 --tensor 2 --pipeline 2 -o llama",
           "$ pipewright train llama/scenario.json --costs llama/costs.json --data tokens.bin "
           "--set "
           "training.steps=4 --verify"}) {
    CAPTURE(command);
    CHECK(page.find(command) != std::string::npos);
  }
}

TEST_CASE("An error names the untrainable features of a planned model before anything starts",
          "[cli]") {
  const TempFolder folder;
  const std::string scenario = planned(folder, {"--pipeline", "2"});
  const std::string missing = folder.path() / "none.bin";
  const auto refusal = [&](const Words& fields) {
    Words words;
    for (const std::string& field : fields)
      words.insert(words.end(), {"--set", field});
    const Result result = train(scenario, missing, 4, words);
    CHECK(result.exit_code == 2);
    return result.err;
  };
  const auto says = [](const std::string& text, const std::string& part) {
    CAPTURE(text, part);
    CHECK(text.find(part) != std::string::npos);
  };
  const std::string rest =
      " is supported in prediction, but not in training by threads of one process";
  says(refusal({"pipeline.context=2"}), "pipeline.context" + rest);
  says(refusal({"model.dropout=true"}), "model.dropout" + rest);
  says(refusal({"pipeline.replicas=2", "pipeline.expert=2"}), "pipeline/expert");
  says(refusal({"pipeline.tensor=4"}),
       "pipeline.tensor=4 can be predicted but not trained: 4 heads, 2 of them of keys and values");
  says(refusal({}),
       missing + ": No such file or directory. Expected a file of tokens with 2 bytes");
}

}  // namespace planned_test
