#include "pipewright/loop/predict/savings.hpp"

#include "pipewright/loop/predict/sensitivities.hpp"
#include "pipewright/plan/quantity_text.hpp"
#include "pipewright/sim/causes/critical_path.hpp"
#include "search/support/drafts.hpp"

namespace savings_test {

using namespace pipewright;
using loop::Saving;
using loop::savings_of;

TEST_CASE("Savings are sorted, and each says what a millisecond less is worth", "[loop][savings]") {
  const search::Answer answer = test::answer_to(test::shared_card());
  const auto savings = savings_of(answer.plan, answer.times, answer.costs);
  int stages = 0, layers = 0, links = 0;
  for (std::size_t i = 0; i < savings.size(); ++i) {
    stages += savings[i].part == Saving::Part::Stage ? 1 : 0;
    layers += savings[i].part == Saving::Part::Layer ? 1 : 0;
    links += savings[i].part == Saving::Part::Link ? 1 : 0;
    if (i > 0)
      CHECK(savings[i].saved <= savings[i - 1].saved);
  }
  CHECK(stages == 4);
  CHECK(layers == 8);
  CHECK(links == 6);
  const auto& best = savings.front();
  CHECK(best.part == Saving::Part::Stage);
  CHECK(best.saved > 1);  // of 16 microbatches, some are not hidden by others
  CHECK(best.text == fmt::format("1 ms less in stage {} for each microbatch saves {}", best.stage,
                                 plan::time_text(best.saved * 1e-3)));
}

TEST_CASE("Making the slowest stage faster saves what was predicted", "[loop][savings]") {
  search::Draft draft =
      test::shared_card({"pipeline.partition=[0,2,5,7,8]", "cluster.between_nodes.shared=false"});
  const search::Answer before = test::answer_to(draft);
  const auto savings = savings_of(before.plan, before.times, before.costs);
  const auto best = std::find_if(savings.begin(), savings.end(), [](const Saving& saving) {
    return saving.part == Saving::Part::Layer;
  });
  const double less = 1e-6;
  plan::LayerCost& layer = draft.costs->layers[static_cast<std::size_t>(best->layer)];
  const double all = compute_time(layer).value;
  for (plan::Seconds* part : {&layer.forward, &layer.input_gradient, &layer.weight_gradient})
    *part = *part * (1 - less / all);
  const double saved = before.times.iteration - test::answer_to(draft).times.iteration;
  CHECK(saved == Approx(less * best->saved).epsilon(1e-6));
}

TEST_CASE("Slack: the critical path has none, and the text gives that of other actions",
          "[loop][savings]") {
  const search::Answer answer = test::answer_to(test::shared_card());
  const auto slack = sim::slack(*answer.plan.structure, answer.times);
  for (const int event : answer.critical)
    CHECK(slack[static_cast<std::size_t>(event)] == Approx(0).margin(1e-12));
  const auto none = loop::in_words(*answer.plan.structure, slack, answer.critical.front());
  CHECK(none.text == "0LOAD0 on rank 0 is on the critical path: any delay lengthens the iteration");
  const auto at = std::max_element(slack.begin(), slack.end()) - slack.begin();
  const auto most = loop::in_words(*answer.plan.structure, slack, static_cast<int>(at));
  CHECK(most.slack_s == slack[static_cast<std::size_t>(at)]);
  CHECK(most.text.find(fmt::format(" could end {} later", plan::time_text(most.slack_s))) !=
        std::string::npos);
}

}  // namespace savings_test
