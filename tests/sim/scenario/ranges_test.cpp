#include "pipewright/sim/scenario/ranges.hpp"

#include <fmt/ranges.h>

#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace ranges_test {

using namespace pipewright::sim;
using pipewright::test::error_of;

std::string values(const std::string& text) {
  return fmt::format("{}", fmt::join(parse_swept_field("f=" + text).values, " "));
}

TEST_CASE("A range counts, steps or multiplies, and ends within its bounds", "[sim][sweep]") {
  CHECK(values("4..7") == "4 5 6 7");
  CHECK(values("4..12+4") == "4 8 12");
  CHECK(values("4..13+4") == "4 8 12");
  CHECK(values("4..64x2") == "4 8 16 32 64");
  CHECK(values("0..0.3+0.1") == "0 0.1 0.2 0.30000000000000004");
  CHECK(values("1e9..1e11x10") == "1000000000 10000000000 100000000000");
  CHECK(values("1e-6..1e-5+1e-6").substr(0, 11) == "1e-06 2e-06");
  CHECK(values("3..3") == "3");
}

TEST_CASE("Values are separated by commas outside of brackets and quotes", "[sim][sweep]") {
  CHECK(values("gpipe,1f1b") == "gpipe 1f1b");
  CHECK(values("1,2,8..10") == "1 2 8 9 10");
  CHECK(parse_swept_field("f=[1,2],[3]").values == std::vector<std::string>{"[1,2]", "[3]"});
  CHECK(parse_swept_field("f=\"a,b\"").values == std::vector<std::string>{"\"a,b\""});
  CHECK(parse_swept_field("data.path=../x..y").values == std::vector<std::string>{"../x..y"});
}

TEST_CASE("A range that is empty or never ends is rejected", "[sim][sweep]") {
  for (const char* wrong : {"4..2", "4..8x1", "0..8x2", "4..8+0", "4..8+-1", "0..1e7"})
    CHECK_THAT(error_of([&] { values(wrong); }), Catch::Matchers::StartsWith("--set f="));
  CHECK_THAT(error_of([] { parse_swept_field("=3"); }), Catch::Matchers::Contains("FIELD=VALUES"));
}

TEST_CASE("Combinations: the last field varies fastest", "[sim][sweep]") {
  CHECK(combinations({{"a", {"1", "2"}}, {"b", {"x", "y"}}}) ==
        std::vector<std::vector<std::string>>{
            {"a=1", "b=x"}, {"a=1", "b=y"}, {"a=2", "b=x"}, {"a=2", "b=y"}});
  const std::vector<std::string> many(2000, "1");
  CHECK_THAT(error_of([&] {
               combinations({{"a", many}, {"b", many}});
             }),
             Catch::Matchers::Contains("million") || Catch::Matchers::Contains("1000000"));
}

TEST_CASE("link.bandwidth means both links of a cluster that has both", "[sim][sweep]") {
  CHECK(expanded("link.bandwidth=5", true) ==
        std::vector<std::string>{"cluster.within_node.bandwidth_per_s=5",
                                 "cluster.between_nodes.bandwidth_per_s=5"});
  CHECK(expanded("link.latency=5", false) ==
        std::vector<std::string>{"cluster.within_node.latency_s=5"});
  CHECK(expanded("pipeline.ranks=5", true) == std::vector<std::string>{"pipeline.ranks=5"});
}

}  // namespace ranges_test
