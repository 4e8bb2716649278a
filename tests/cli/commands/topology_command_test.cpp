#include <nlohmann/json.hpp>

#include "cli/support/program.hpp"
#include "support/catch.hpp"

namespace topology_command_test {

using nlohmann::json;
using pipewright::test::run_program;

std::string refusal(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "topology");
  const auto result = run_program(arguments);
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  return result.err;
}

TEST_CASE("topology prints ranks, coordinates and groups as a table", "[cli][topology]") {
  const auto result = run_program({"topology", "--axes", "pipe,data,model", "--dims", "2,1,2"});
  CHECK(result.exit_code == 0);
  CHECK(result.out ==
        "rank  pipe  data  model  repr\n"
        "   0     0     0      0  model_00\n"
        "   1     0     0      1  model_01\n"
        "   2     1     0      0  model_00\n"
        "   3     1     0      1  model_01\n"
        "groups along pipe: [0, 2] [1, 3]\n"
        "groups along data: [0] [1] [2] [3]\n"
        "groups along model: [0, 1] [2, 3]\n"
        "replicas of the model: [0, 1, 2, 3]\n"
        "from stage to next stage: [0, 2] [1, 3] [2, 0] [3, 1]\n");
}

TEST_CASE("topology --json: coordinates and repr by rank, groups by axis", "[cli][topology]") {
  const auto result = run_program({"topology", "--axes", "row,col", "--dims", "2,2", "--json"});
  REQUIRE(result.exit_code == 0);
  CHECK(json::parse(result.out) == json::parse(R"({
    "axes": ["row", "col"], "dims": [2, 2], "ranks": [0, 1, 2, 3],
    "coordinates": [[0, 0], [0, 1], [1, 0], [1, 1]],
    "groups": {"row": [[0, 2], [1, 3]], "col": [[0, 1], [2, 3]]},
    "repr": ["row_00-col_00", "row_00-col_01", "row_01-col_00", "row_01-col_01"]})"));
}

TEST_CASE("topology --json: pipe and data make a grid", "[cli][topology]") {
  const auto result = run_program({"topology", "--ranks", "4", "--json"});
  REQUIRE(result.exit_code == 0);
  const auto answer = json::parse(result.out);
  CHECK(answer["dims"] == json({2, 2}));
  CHECK(answer["repr"] == json({"", "", "", ""}));
  CHECK(answer["grid"] == json::parse(R"({
    "stages": 2, "pipe_groups": [[0, 2], [1, 3]], "data_groups": [[0, 1], [2, 3]],
    "model_groups": [[0], [1], [2], [3]], "replica_groups": [[0, 2], [1, 3]],
    "p2p_groups": [[0, 2], [1, 3], [2, 0], [3, 1]]})"));
}

TEST_CASE("topology: chosen ranks, and the groups that contain them", "[cli][topology]") {
  const auto chosen = [](std::vector<std::string> how) {
    std::vector<std::string> arguments{"topology", "--axes", "pipe,data", "--dims", "2,3"};
    arguments.insert(arguments.end(), {"--omit", "pipe", "--json"});
    arguments.insert(arguments.end(), how.begin(), how.end());
    return json::parse(run_program(arguments).out);
  };
  const auto where = chosen({"--where", "pipe=1"});
  CHECK(where["ranks"] == json({3, 4, 5}));
  CHECK(where["repr"] == json({"data_00", "data_01", "data_02"}));
  CHECK(where["groups"]["data"] == json::parse("[[3, 4, 5]]"));
  CHECK(chosen({"--where", "pipe=0,data=2"})["ranks"] == json::array({2}));
  CHECK(chosen({"--where", "pipe=2"})["ranks"] == json::array());
  const auto one = chosen({"--rank", "4"});
  CHECK(one["coordinates"] == json::parse("[[1, 1]]"));
  CHECK(one["groups"]["pipe"] == json::parse("[[1, 4]]"));
}

TEST_CASE("topology rejects invalid input with an error message", "[cli][topology]") {
  CHECK(refusal({"--axes", "pipe,data", "--dims", "2,4", "--ranks", "6"}) ==
        "pipe 2 x data 4 is 8 ranks, but there are 6\n");
  CHECK(refusal({"--axes", "pipe,pipe", "--dims", "2,4"}) == "the axis \"pipe\" occurs twice\n");
  CHECK(refusal({"--ranks", "8", "--rank", "8"}) == "there is no rank 8: the 8 ranks are 0 to 7\n");
  CHECK(refusal({"--ranks", "8", "--where", "tensor=0"}) ==
        "no axis is called \"tensor\" (known: pipe or data)\n");
  CHECK(refusal({"--ranks", "8", "--omit", "date"}) ==
        "no axis is called \"date\", did you mean \"data\"? (known: pipe or data)\n");
  CHECK(refusal({"--ranks", "8", "--where", "pipe=1x"}) ==
        "--where \"pipe=1x\": write an axis and an index, such as pipe=0\n");
  CHECK(refusal({}) == "give --axes and --dims, or --ranks for a grid of pipe and data\n");
  CHECK(refusal({"--axes", "a", "--dims", "1000001"}) ==
        "1000001 ranks are too many to print: the maximum is 1000000\n");
}

}  // namespace topology_command_test
