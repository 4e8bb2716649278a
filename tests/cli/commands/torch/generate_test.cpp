// Generation of tokens with a scenario's model.

#include <nlohmann/json.hpp>

#include "cli/support/program.hpp"
#include "support/catch.hpp"

namespace generate_test {

using namespace pipewright;
using nlohmann::json;
using test::run_program;
using Words = std::vector<std::string>;

json generated(Words more) {
  Words words{"generate", test::gpt_scenario, "--tokens", "84,104,101", "--tokens", "65", "--json"};
  words.insert(words.end(), more.begin(), more.end());
  const auto result = run_program(words);
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  return json::parse(result.out).at("sequences");
}

TEST_CASE("generate continues prompts, with the same result on any number of ranks", "[cli]") {
  const Words drawn{"--new-tokens", "5", "--temperature", "1", "--top-k", "50", "--seed", "3"};
  const json two = generated(drawn);
  REQUIRE(two.size() == 2);
  CHECK(two[0].at("prompt") == json::array({84, 104, 101}));
  CHECK(two[0].at("tokens").size() == 5);
  CHECK(two[1].at("prompt") == json::array({65}));
  CHECK(two[1].at("tokens").size() == 5);
  Words alone = drawn;
  alone.insert(alone.end(), {"--set", "pipeline.ranks=1"});
  CHECK(generated(alone) == two);
  const std::string third = std::to_string(two[0].at("tokens").at(2).get<int>());
  Words stopped = drawn;
  stopped.insert(stopped.end(), {"--stop", third});
  CHECK(generated(stopped)[0].at("tokens").back() == two[0].at("tokens").at(2));
  CHECK(generated(stopped)[0].at("tokens").size() <= 3);
}

TEST_CASE("generate rejects invalid prompts, and models that cannot generate", "[cli]") {
  const auto error = [](const Words& words) {
    const auto result = run_program(words);
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK(error({"generate", test::gpt_scenario, "--tokens", "5,x"})
            .find("--tokens 5,x: \"x\" is not a token; give numbers such as 5,11,2") !=
        std::string::npos);
  CHECK(error({"generate", test::gpt_scenario, "--tokens", "5,256"})
            .find("tokens from 5 to 256 are not all in a vocabulary of 256") != std::string::npos);
  CHECK(error({"generate", test::gpt_scenario, "--tokens", "5", "--set", "pipeline.tensor=2",
               "--set", "pipeline.replicas=2"})
            .find("generation uses pipeline.ranks only, and cannot use pipeline.replicas 2, "
                  "pipeline.tensor 2. Add --set pipeline.replicas=1 --set pipeline.tensor=1") !=
        std::string::npos);
  CHECK(error({"generate", PIPEWRIGHT_SOURCE_DIR "/scenarios/alexnet-cifar10/scenario.json",
               "--tokens", "5"})
            .find("cannot generate tokens") != std::string::npos);
}

}  // namespace generate_test
