// Tests the parts of a prediction's error.

#include "pipewright/loop_torch/error_parts.hpp"

#include "loop/torch/support/verified_plans.hpp"
#include "pipewright/loop/predict/prediction.hpp"

namespace error_parts_test {

using namespace pipewright;

TEST_CASE("A gap before an action that could have run counts as launch", "[loop][explain]") {
  plan::Scenario scenario = test::odd_scenario();
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "interleaved-1f1b"}) {
    INFO(schedule);
    scenario.pipeline.schedule = schedule;
    REQUIRE(test::choose_microbatches(scenario));
    const loop::Plan plan = loop::make_plan(scenario, test::odd_costs());
    const sim::Structure& structure = *plan.structure;

    // A step whose actions take the predicted time but start late.
    constexpr double late = 2e-4;
    std::vector<double> seconds;
    const auto times = loop::predict(scenario, plan).times;
    for (int event = 0; event < structure.size(); ++event)
      seconds.push_back(plan::is_compute(structure.events()[event].instruction->kind)
                            ? times[event].end - times[event].start + late
                            : 0);
    sim::ScenarioPlan begun_late = plan;
    begun_late.costs = loop::with_measured(structure, plan.costs, seconds);
    plan::Timeline step = loop::predict(scenario, begun_late).timeline;
    for (plan::Span& span : step.spans)
      if (span.row == plan::Row::Compute)
        span.start += plan::Seconds{late};
      // The data had already arrived.
      else if (span.row == plan::Row::Receive && span.start == span.end)
        span.start = span.end = span.start + plan::Seconds{late};

    const loop::ErrorParts parts = error_parts(plan, {step}, plan.predicted.length, step.length);
    CHECK(parts.layers.value == Approx(0).margin(1e-9));
    CHECK(parts.launch.value == Approx((plan.predicted.length - step.length).value).epsilon(1e-6));
    CHECK(parts.launch.value < -5 * late);
    CHECK(parts.waiting.value == Approx(0).margin(1e-9));
  }
}

}  // namespace error_parts_test
