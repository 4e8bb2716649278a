#include "commands.hpp"
#include "console.hpp"
#include "interrupt.hpp"
#include "pipewright/exec/executor.hpp"
#include "prediction.hpp"
#include "training.hpp"

namespace pipewright::cli {
namespace {

struct TrainOptions {
  ScenarioOptions scenario;
  std::string costs;
  bool verify = false;
};

int train_command(const TrainOptions& options) {
  const auto scenario = read_scenario(options.scenario.file, options.scenario.assignments,
                                      options.scenario.data_path);
  plan::require_trainable(scenario);
  exec::require_trainable(sim::sound_program(scenario));
  const Workload workload(scenario);
  catch_interrupts();
  const auto costs = costs_for(scenario, workload, options.costs);
  const Plan plan = make_plan(scenario, costs);
  say(plan_table(plan, costs) + core_warning(scenario));
  const TrainingOutcome outcome = train(scenario, plan, workload);
  if (outcome.interrupted)
    return Interrupted;

  plan::Json answer{{"loss", outcome.losses}, {workload.unit() + "_per_s", outcome.units_per_s}};
  std::string verdict;
  bool identical = true;
  if (options.verify) {
    const Verification verification = verify(scenario, workload, outcome);
    identical = verification.bit_identical();
    answer["verify"] = {{"bit_identical", identical}};
    verdict = to_string(verification) + "\n";
  }
  if (options.scenario.json)
    fmt::print("{}\n", answer.dump(2));
  else
    fmt::print("loss {:.4f} → {:.4f} in {} steps, {:.0f} {}/s\n{}", outcome.losses.front(),
               outcome.losses.back(), outcome.losses.size(), outcome.units_per_s, workload.unit(),
               verdict);
  return identical ? Done : NegativeAnswer;
}

}  // namespace

Action add_train(CLI::App& program) {
  auto* const command = program.add_subcommand("train", "Train by the scenario's plan");
  auto options = std::make_shared<TrainOptions>();
  add_scenario_options(*command, options->scenario);
  command->add_option("--costs", options->costs, "Layer costs from this file, not measured now")
      ->type_name("FILE");
  command->add_flag("--verify", options->verify,
                    "Train again without a pipeline and demand bit-identical results");
  command->footer(
      "Example: pipewright train scenarios/gpt-text/scenario.json --set training.steps=20");
  return [options] { return train_command(*options); };
}

}  // namespace pipewright::cli
