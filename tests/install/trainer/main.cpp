// The whole loop in a program of one's own: measure, plan, train by the plan, compare.

#include <iostream>
#include <pipewright/exec/engine/engine.hpp>
#include <pipewright/loop_torch/run_scenario.hpp>
#include <pipewright/plan/error.hpp>
#include <pipewright/plan/json/json_document.hpp>
#include <pipewright/plan/model/gpt_model.hpp>

using namespace pipewright;

namespace {

/// Whether it trained with the bits of training without a pipeline.
bool measure_plan_and_train(const char* scenario_file, const char* folder) {
  plan::Scenario scenario = plan::scenario_from_json(plan::JsonDocument::read(scenario_file));
  auto& gpt = scenario.model.as<plan::GptShape>();
  gpt.blocks = 2;
  gpt.hidden = 16;
  gpt.heads = 2;
  gpt.sequence = 8;
  scenario.training.steps = 3;
  scenario.profile.least_repeats = scenario.profile.most_repeats = 2;
  loop::Membership alone;
  const auto done = loop::run_scenario(scenario, alone, {.folder = folder, .verify = true});
  std::cout << to_string(*done->verification) << '\n';
  return done->verification->bit_identical();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: trainer SCENARIO FOLDER\n";
    return 2;
  }
  try {
    return measure_plan_and_train(argv[1], argv[2]) ? 0 : 1;
  } catch (const plan::InputError& error) {
    std::cerr << error.what() << '\n';
    return 2;
  } catch (const std::exception& failure) {
    std::cerr << failure.what() << '\n';
    return 1;
  }
}
