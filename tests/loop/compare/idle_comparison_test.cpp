#include "pipewright/loop/compare/idle_comparison.hpp"

#include "pipewright/plan/json/json_document.hpp"
#include "support/catch.hpp"

namespace idle_comparison_test {

using namespace pipewright::plan;
using namespace pipewright::loop;

TEST_CASE("Idle time is compared by cause if both timelines have causes", "[plan][idle]") {
  Timeline predicted{.name = "t", .ranks = 2, .length = {10}, .spans = {}, .memory = {}};
  Timeline measured = predicted;
  const auto json_of = [&] { return idle_json(compare_idle(predicted, measured)); };
  const auto line_of = [&] { return idle_line(compare_idle(predicted, measured)); };
  CHECK(json_of().empty());
  CHECK(line_of().empty());
  predicted.idle = {{1, IdleCause::WarmUp, {0}, {2}}};
  CHECK(line_of().empty());
  measured.idle = {{1, IdleCause::WarmUp, {0}, {2.5}},
                   {1, IdleCause::Launch, {3}, {3.25}},
                   {0, IdleCause::Launch, {3}, {3.25}}};
  const Json json = json_of();
  CHECK(json[1]["predicted"]["warm-up"] == 2);
  CHECK(json[1]["measured"]["warm-up"] == 2.5);
  CHECK(json[1]["measured"]["launch"] == 0.25);
  CHECK(json[0]["predicted"]["launch"] == 0);
  CHECK(line_of() ==
        "idle, all ranks, ms: warm-up 2500.0 (predicted 2000.0), launch 500.0 (predicted 0.0)\n");
}

}  // namespace idle_comparison_test
