// Tests evaluations during a training: on separate data, with the same result under every plan, and
// without an effect on the trained model.

#include <fstream>

#include "loop/torch/support/verified_plans.hpp"
#include "pipewright/loop/record/step_log.hpp"
#include "pipewright/loop_torch/train_scenario.hpp"
#include "pipewright/plan/generators/round_robin.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "support/error_of.hpp"
#include "support/temp_folder.hpp"

namespace evaluation_test {

using namespace pipewright;

plan::Scenario small_scenario(const test::TempFolder& folder) {
  plan::Scenario scenario = test::odd_scenario();
  const auto unseen = folder.path() / "unseen.txt";
  std::ofstream(unseen) << "other words, of which each is read, and none is learnt from";
  scenario.data.evaluation = unseen;
  scenario.pipeline.ranks = 2;
  scenario.pipeline.microbatches = 4;
  scenario.training.steps = 4;
  return scenario;
}

loop::TrainReport trained(const plan::Scenario& scenario, const std::filesystem::path& out = {}) {
  loop::Membership alone;
  loop::TrainSettings settings;
  settings.prepare.costs = test::odd_costs();
  settings.folder = out;
  return *loop::train_scenario(scenario, alone, settings);
}

TEST_CASE("Every N steps a batch of other data is evaluated without changing the model", "[loop]") {
  const test::TempFolder folder;
  plan::Scenario scenario = small_scenario(folder);
  const auto without = trained(scenario);
  scenario.training.evaluate_every = 2;
  const auto with = trained(scenario);
  CHECK(with.outcome.losses == without.outcome.losses);
  CHECK(without.outcome.evaluations.empty());
  REQUIRE(with.outcome.evaluations.size() == 2);
  CHECK(with.outcome.evaluations.count(1) == 1);
  CHECK(with.outcome.evaluations.count(3) == 1);
  for (const auto& [step, loss] : with.outcome.evaluations)
    CHECK(loss != with.outcome.losses[static_cast<std::size_t>(step)]);
}

TEST_CASE("An evaluation has the same bits under every plan", "[loop]") {
  const test::TempFolder folder;
  plan::Scenario scenario = small_scenario(folder);
  scenario.training.evaluate_every = 2;
  scenario.training.gradient_groups = 2;
  const auto evaluations = trained(scenario).outcome.evaluations;
  for (const char* schedule : {"zbv", "dualpipe", "gpipe"}) {
    plan::Scenario other = scenario;
    other.pipeline.schedule = schedule;
    CHECK(trained(other).outcome.evaluations == evaluations);
  }
  plan::Scenario side_by_side = scenario;
  side_by_side.pipeline.replicas = 2;
  side_by_side.pipeline.microbatches = 2;
  for (const int zero : {0, 1}) {
    side_by_side.training.zero = zero;
    CHECK(trained(side_by_side).outcome.evaluations == evaluations);
  }
  // These sum a batch in another order, and must gather parameters for an evaluation.
  side_by_side.training.gradient_groups = 0;
  side_by_side.training.zero = 2;
  const auto scattered = trained(side_by_side).outcome.evaluations;
  side_by_side.training.zero = 3;
  CHECK(trained(side_by_side).outcome.evaluations == scattered);
}

TEST_CASE("An evaluation uses all replicas of a stage", "[loop]") {
  const test::TempFolder folder;
  plan::Scenario plain = small_scenario(folder);
  plain.training.evaluate_every = 1;
  plain.training.learning_rate = 1e-30;  // gradients are summed in another order
  plain.training.weight_decay = 0;
  plan::Scenario copies = plain;
  copies.pipeline.schedule = plan::make_1f1b_rr({2, 1, 1}, 4);
  copies.pipeline.ranks = 4;
  const auto evaluations = trained(plain).outcome.evaluations;
  CHECK(evaluations.size() == 4);
  CHECK(trained(copies).outcome.evaluations == evaluations);
}

TEST_CASE("A log line has learning rate, norm, bubble, memory, waiting and evaluation", "[loop]") {
  const test::TempFolder folder;
  plan::Scenario scenario = small_scenario(folder);
  scenario.training.evaluate_every = 3;
  scenario.training.clip_norm = 1;
  scenario.training.warm_up_steps = 2;
  scenario.cluster.device.flops_per_s = 1e12;
  trained(scenario, folder.path() / "out");
  loop::StepReader reader(folder.path() / "out" / "steps.jsonl");
  const auto lines = reader.next();
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].learning_rate == 0.5e-3);
  CHECK(lines[3].learning_rate == 1e-3);
  for (const loop::StepLine& line : lines) {
    CHECK(line.gradient_norm.value_or(0) > 0);
    CHECK(line.mfu.value_or(0) > 0);
    CHECK(line.mfu.value_or(1) < 1);
    CHECK(line.bubble.value_or(0) > 0);
    CHECK(line.bubble.value_or(1) < 1);
    CHECK(line.peak_bytes.value_or(0) > 0);
    CHECK(line.waiting.contains("data"));
    CHECK(line.waiting.size() > 1);
    CHECK(line.evaluation_loss.has_value() == (line.step == 2));
  }
}

}  // namespace evaluation_test
