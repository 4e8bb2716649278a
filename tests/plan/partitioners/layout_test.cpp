#include "pipewright/plan/partitioners/layout.hpp"

#include <random>

#include "pipewright/plan/model/alexnet_model.hpp"
#include "pipewright/plan/model/gpt_model.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace layout_test {

using namespace pipewright::plan;
using pipewright::test::error_of;

std::string error_in(const std::string& text) {
  return error_of([&] { parse_layout(text); });
}

std::string written(const std::string& text) { return to_string(parse_layout(text)); }

TEST_CASE("A layout unrolls its repeats into stages", "[plan][layout]") {
  CHECK(parse_layout("Et|tt|L").stages == std::vector<std::string>{"Et", "tt", "L"});
  CHECK(parse_layout("E,t*3|(t|)*2mL").stages == std::vector<std::string>{"Ettt", "t", "t", "mL"});
  CHECK(parse_layout("(t(m|)*2)*2").stages == std::vector<std::string>{"tm", "m", "tm", "m", ""});
  CHECK(parse_layout("E||tL").stages == std::vector<std::string>{"E", "", "tL"});
  CHECK(parse_layout("E|*3tL").stages == std::vector<std::string>{"E", "", "", "tL"});
}

TEST_CASE("The published layout of 61 layers on 32 stages is parsed", "[plan][layout]") {
  const Layout layout = parse_layout("Et*3|(tt|)*29,m|L");
  REQUIRE(layout.stages.size() == 32);
  CHECK(layout.stages.front() == "Ettt");
  CHECK(layout.stages[29] == "tt");
  CHECK(layout.stages[30] == "m");
  CHECK(layout_boundaries(layout).back() == 1 + 3 + 58 + 1 + 1);
  CHECK(to_string(layout) == "Et*3|(tt|)*29,m|L");
}

TEST_CASE("A layout is written in its usual form", "[plan][layout]") {
  CHECK(written("E,t,t|tt|ttL") == "Ett|tt|ttL");
  CHECK(written("tttt|tttt|tttt") == "(t*4|)*2,t*4");
  CHECK(written("t|||") == "t|(|)*2,");
  CHECK(written("(t)*5") == "t*5");
}

TEST_CASE("A written layout reads back unchanged", "[plan][layout]") {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    Layout layout{{"E"}};
    for (int letter = 0; letter < 20; ++letter)
      if (random() % 3 == 0)
        layout.stages.emplace_back();
      else
        layout.stages.back() += "ttm"[random() % 3];
    layout.stages.back() += 'L';
    CAPTURE(to_string(layout));
    REQUIRE(parse_layout(to_string(layout)) == layout);
  }
}

TEST_CASE("A layout's error is reported with its column", "[plan][layout]") {
  CHECK(error_in("Et|x") ==
        "layout \"Et|x\", column 4: 'x' is not known here (possible: E, t, m, L, |, groups and "
        "repeats)");
  CHECK(error_in("E(tt|") == "layout \"E(tt|\", column 2: this ( is never closed");
  CHECK(error_in("Et)") == "layout \"Et)\", column 3: this ) closes no group");
  CHECK(error_in("*3") == "layout \"*3\", column 1: there is nothing before this * to repeat");
  CHECK(error_in("t*2*3") ==
        "layout \"t*2*3\", column 4: there is nothing before this * to repeat");
  CHECK(error_in("t*0") == "layout \"t*0\", column 4: a number of at least 1 is needed after *");
  CHECK(error_in("t*") == "layout \"t*\", column 3: a number of at least 1 is needed after *");
  CHECK(error_in("(t*9999)*9999") ==
        "layout \"(t*9999)*9999\", column 14: more than 100000 letters");
  CHECK(error_in("tE") == "layout \"tE\": E, the embedding, is possible as the first layer only");
  CHECK(error_in("L|t") == "layout \"L|t\": L, the loss, is possible as the last layer only");
  CHECK(error_in("||") ==
        "layout \"||\": there is no layer in it: write a letter for each, such as Et|tL");
}

TEST_CASE("A model's stages have a layout, and a layout the model's boundaries", "[plan][layout]") {
  const Model gpt = gpt_model({.blocks = 6});
  CHECK(to_string(layout_of(gpt, {0, 3, 5, 8})) == "Ett|tt|ttL");
  CHECK(layout_boundaries(parse_layout("Et|t*5|L"), gpt) == std::vector<int>{0, 2, 7, 8});
  CHECK(error_of([&] { layout_boundaries(parse_layout("Et|L"), gpt); }) ==
        "the layout has the layers EtL, but the model has Et*6L");
  CHECK(error_of([] {
          layout_letters(alexnet_model({}));
        }).find("for which layouts have no letter") != std::string::npos);
}

}  // namespace layout_test
