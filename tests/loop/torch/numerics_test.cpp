// Tests 16-bit precision, loss scaling and parameter groups of scenarios, bit for bit against
// training without a pipeline.

#include "loop/torch/support/verified_plans.hpp"
#include "pipewright/loop_torch/train_scenario.hpp"

namespace numerics_test {

using namespace pipewright;

plan::Scenario scenario_with(const plan::Training& training, const std::string& schedule = "1f1b") {
  plan::Scenario scenario = test::odd_scenario();
  scenario.pipeline.ranks = 2;
  scenario.pipeline.microbatches = 4;
  scenario.pipeline.schedule = schedule;
  scenario.training = training;
  scenario.training.steps = 3;
  scenario.training.microbatch_size = 1;
  return scenario;
}

loop::TrainReport verified(const plan::Scenario& scenario) {
  loop::Membership alone;
  loop::TrainSettings settings;
  settings.prepare.costs = test::odd_costs();
  settings.verify = true;
  auto done = *loop::train_scenario(scenario, alone, settings);
  INFO(to_string(*done.verification));
  CHECK(done.verification->bit_identical());
  return done;
}

TEST_CASE("Float16 learns with a loss scale that halves until gradients are finite", "[loop]") {
  const auto half = verified(scenario_with({.precision = plan::Precision::MixedHalf}));
  const auto full = verified(scenario_with({}));
  for (std::size_t step = 0; step < 3; ++step)
    CHECK(half.outcome.losses[step] == Approx(full.outcome.losses[step]).epsilon(0.02));
  CHECK(half.outcome.parameters.begin()->second.scalar_type() == at::kHalf);
}

TEST_CASE("A fixed loss scale changes only the last bits", "[loop]") {
  const auto scaled = verified(scenario_with({.loss_scale = 1024}, "zb-h1"));
  const auto plain = verified(scenario_with({}, "zb-h1"));
  for (std::size_t step = 0; step < 3; ++step)
    CHECK(scaled.outcome.losses[step] == Approx(plain.outcome.losses[step]).epsilon(1e-5));
}

TEST_CASE("Weight decay does not change norms and biases on any rank", "[loop]") {
  for (const char* schedule : {"1f1b", "zbv"}) {
    const auto done =
        verified(scenario_with({.learning_rate = 1e-2,
                                // With a learning rate of 1, a step would remove the whole weight.
                                .weight_decay = 100,
                                .decayed = plan::Decayed::Matrices},
                               schedule));
    int norms = 0;
    for (const auto& [name, parameter] : done.outcome.parameters) {
      if (parameter.dim() > 1)
        CHECK(parameter.abs().max().item<float>() < 0.03F);
      norms += parameter.dim() == 1 && parameter.min().item<float>() > 0.9F ? 1 : 0;
    }
    CHECK(norms == 2 * 3 + 1);  // weights of norms start at 1: two in each block, one in the head
  }
}

}  // namespace numerics_test
