// The whole loop in a program of one's own: measure, plan, train by the plan, compare.

#include <iostream>
#include <pipewright/exec/engine/engine.hpp>
#include <pipewright/loop_torch/run_scenario.hpp>
#include <pipewright/plan/json/json_document.hpp>
#include <pipewright/plan/model/gpt_model.hpp>

using namespace pipewright;

int main(int, char** words) {
  plan::Scenario scenario = plan::scenario_from_json(plan::JsonDocument::read(words[1]));
  auto& gpt = scenario.model.as<plan::GptShape>();
  gpt.blocks = 2;
  gpt.hidden = 16;
  gpt.heads = 2;
  gpt.sequence = 8;
  scenario.training.steps = 3;
  scenario.profile.least_repeats = scenario.profile.most_repeats = 2;
  loop::Membership alone;
  const auto done = loop::run_scenario(scenario, alone, {.folder = words[2], .verify = true});
  std::cout << to_string(*done->verification) << '\n';
  return done->verification->bit_identical() ? 0 : 1;
}
