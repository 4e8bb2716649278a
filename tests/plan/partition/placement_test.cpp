#include "pipewright/plan/partition/placement.hpp"

#include <nlohmann/json.hpp>

#include "pipewright/plan/generators/generators.hpp"
#include "pipewright/plan/schedules/placement_of.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"
#include "support/reference.hpp"

namespace placement_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

using Ranks = std::vector<int>;
using Stages = std::vector<std::vector<int>>;

std::string error_in(const std::string& text) {
  return error_of([&] { parse_placement(text); });
}

/// Returns the error of a text that ends early or is wrong at a character.
std::string needed(const std::string& text, int character, const std::string& what) {
  return "placement \"" + text + "\", character " + std::to_string(character) + ": " + what +
         " is needed here; write the stages of each rank, such as 0:[0,1,4],1:[2,3]";
}

TEST_CASE("A placement lists the stages of each rank", "[plan][placement]") {
  CHECK(parse_placement("0:[0]") == Ranks{0});
  CHECK(parse_placement("0:[0,1,4],1:[2,3]") == Ranks{0, 0, 1, 1, 0});
  CHECK(parse_placement("0:[0,3],1:[1,2]") == Ranks{0, 1, 1, 0});
}

TEST_CASE("A placement may name ranks and stages in any order, with spaces", "[plan][placement]") {
  CHECK(parse_placement(" 1 : [ 3 , 2 ] , 0 : [ 4 , 0 , 1 ] ") == Ranks{0, 0, 1, 1, 0});
  CHECK(parse_placement("0:[0],1:[1],0:[2]") == Ranks{0, 1, 0});  // a rank may occur twice
}

TEST_CASE("A placement's error names the character and the expected text", "[plan][placement]") {
  const std::string rank = "a rank from 0 to 99999", stage = "a stage from 0 to 99999";
  CHECK(error_in("") == needed("", 1, rank));
  CHECK(error_in("x") == needed("x", 1, rank));
  CHECK(error_in("-1:[0]") == needed("-1:[0]", 1, rank));
  CHECK(error_in("100000:[0]") == needed("100000:[0]", 1, rank));
  CHECK(error_in("99999999999:[0]") == needed("99999999999:[0]", 1, rank));
  CHECK(error_in("0") == needed("0", 2, "':'"));
  CHECK(error_in("0[0]") == needed("0[0]", 2, "':'"));
  CHECK(error_in("0:0") == needed("0:0", 3, "'['"));
  CHECK(error_in("0:[") == needed("0:[", 4, stage));
  CHECK(error_in("0:[]") == needed("0:[]", 4, stage));
  CHECK(error_in("0:[0,]") == needed("0:[0,]", 6, stage));
  CHECK(error_in("0:[0") == needed("0:[0", 5, "']'"));
  CHECK(error_in("0:[0 1]") == needed("0:[0 1]", 6, "']'"));
  CHECK(error_in("0:[0],") == needed("0:[0],", 7, rank));
  CHECK(error_in("0:[0]1:[1]") == needed("0:[0]1:[1]", 6, "','"));
  CHECK(error_in("0:[100000]") == needed("0:[100000]", 4, stage));
}

TEST_CASE("Every stage needs one rank", "[plan][placement]") {
  CHECK(error_in("0:[0],1:[2]") ==
        "placement \"0:[0],1:[2]\": stage 1 is on no rank, but stage 2 is on rank 1");
  CHECK(error_in("3:[1]") ==
        "placement \"3:[1]\": stage 0 is on no rank, but stage 1 is on rank 3");
  CHECK(error_in("0:[0,1],1:[1]") ==
        "placement \"0:[0,1],1:[1]\": stage 1 occurs twice, on rank 0 and rank 1");
  CHECK(error_in("0:[0,0]") == "placement \"0:[0,0]\": stage 0 occurs twice, on rank 0 and rank 0");
}

TEST_CASE("In a loop, stage s is on rank s mod P", "[plan][placement]") {
  CHECK(loop_placement(3, 7) == Ranks{0, 1, 2, 0, 1, 2, 0});
  CHECK(loop_placement(4, 4) == Ranks{0, 1, 2, 3});
  CHECK(loop_placement(1, 3) == Ranks{0, 0, 0});
}

TEST_CASE("In a V, stages go down and up again", "[plan][placement]") {
  CHECK(v_placement(3, 6) == Ranks{0, 1, 2, 2, 1, 0});
  CHECK(v_placement(2, 8) == Ranks{0, 1, 1, 0, 0, 1, 1, 0});
  CHECK(v_placement(3, 3) == Ranks{0, 1, 2});
  CHECK(error_of([] { v_placement(4, 6); }) ==
        "6 stages cannot be folded over 4 ranks: a V placement needs a multiple of 4, such as 8");
  CHECK(error_of([] { v_placement(4, 1); }) ==
        "1 stages cannot be folded over 4 ranks: a V placement needs a multiple of 4, such as 4");
}

TEST_CASE("The stages of a rank are those placed on it, in ascending order", "[plan][placement]") {
  CHECK(stages_of_rank({0, 0, 1, 1, 0}, 2) == Stages{{0, 1, 4}, {2, 3}});
  CHECK(stages_of_rank({0, 0}, 3) == Stages{{0, 1}, {}, {}});
}

TEST_CASE("With one route, every microbatch takes it", "[plan][placement]") {
  const Placement placement = one_route({0, 1, 1, 0});
  CHECK(placement.stage_count() == 4);
  CHECK(placement.route_of(7) == 0);
  CHECK(placement.rank_of(2, 7) == 1);
  CHECK_FALSE(placement.is_bidirectional());
  CHECK(placement.holds(0, 3));
  CHECK_FALSE(placement.holds(1, 3));
  CHECK(placement.stages_on(0) == Ranks{0, 3});
  CHECK(placement.ranks_of(3) == Ranks{0});
  CHECK(Placement{}.stage_count() == 0);
}

TEST_CASE("With two routes, a stage is on a rank of each", "[plan][placement]") {
  const Placement placement{.routes = {{0, 1, 2}, {2, 1, 0}}, .route_of_microbatch = {0, 0, 1}};
  CHECK(placement.is_bidirectional());
  CHECK(placement.route_of(1) == 0);
  CHECK(placement.route_of(2) == 1);
  CHECK(placement.rank_of(0, 1) == 0);
  CHECK(placement.rank_of(0, 2) == 2);
  CHECK(placement.ranks_of(0) == Ranks{0, 2});
  CHECK(placement.ranks_of(1) == Ranks{1});  // once, although on both routes
  CHECK(placement.holds(2, 0));
  CHECK_FALSE(placement.holds(1, 0));
  CHECK(placement.stages_on(2) == Ranks{0, 2});
}

TEST_CASE("Schedules have the expected routes", "[plan][placement]") {
  CHECK(placement_of(make_1f1b(4, 8)) == one_route({0, 1, 2, 3}));
  CHECK(placement_of(make_looped_bfs(2, 8, 3)) == one_route(loop_placement(2, 6)));
  CHECK(placement_of(make_hanayo(3, 6, 2)) == one_route(v_placement(3, 12)));
  CHECK(placement_of(make_zbv(3, 6)) == one_route(v_placement(3, 6)));
  const Stages both{{0, 1, 2, 3}, {3, 2, 1, 0}};
  CHECK(placement_of(make_dualpipe(4, 8)).routes == both);
  CHECK(placement_of(make_dualpipe(4, 8)).route_of_microbatch == Ranks{0, 0, 0, 0, 1, 1, 1, 1});
  CHECK(placement_of(make_data_parallel(2, 2)).routes == Stages{{0}, {1}});
  CHECK(placement_of(make_data_parallel(2, 2)).route_of_microbatch == Ranks{0, 0, 1, 1});
}

TEST_CASE("Stages are mapped as in torch, in a loop and in a V", "[plan][reference]") {
  const auto cases = pipewright::test::reference_cases("topology/torch_stage_mapping.json");
  std::size_t matching = 0;
  for (const auto& entry : cases) {
    const int ranks = entry.at("P"), stages = entry.at("num_stages");
    const bool loop = entry.at("style") == "loop";
    INFO(entry.at("style") << ", " << ranks << " ranks, " << stages << " stages");
    const Ranks ours = loop ? loop_placement(ranks, stages) : v_placement(ranks, stages);
    const bool same = ours == entry.at("rank_of_stage").get<Ranks>() &&
                      stages_of_rank(ours, ranks) == entry.at("stages_of_rank").get<Stages>();
    CHECK(same);
    matching += same;
  }
  pipewright::test::report_equal("torch_stage_mapping.json", matching, cases.size());
}

TEST_CASE("A placement does not end at a null character", "[plan][placement]") {
  CHECK(parse_placement("0:[0] ") == std::vector{0});
  CHECK_THROWS_AS(parse_placement(std::string_view("0:[0]\0,0:[0]", 12)), InputError);
}

}  // namespace placement_test
