#include "commands/commands.hpp"
#include "exit_code.hpp"
#include "options/scenario_options.hpp"
#include "pipewright/models/trainers/trainer_file.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"
#include "print/console.hpp"
#include "process/other_programs.hpp"

namespace pipewright::cli {
namespace {

struct ExportOptions {
  ScenarioOptions scenario;
  std::string trainer;
  std::string costs;
  std::string out;
};

/// Returns the scenario with its stage boundaries set. Explicit boundaries need no costs.
plan::Scenario exported(const ExportOptions& options) {
  const plan::Scenario scenario = read_scenario(options.scenario);
  sim::sound_program(scenario);  // rejects the scenario before anything is measured
  if (!std::holds_alternative<std::string>(scenario.pipeline.partition))
    return scenario;
  return sim::placed(scenario, sim::lay_out(scenario, costs_for(scenario, options.costs)));
}

int export_plan(const ExportOptions& options) {
  const models::Trainer trainer = models::trainer_of(options.trainer);
  const plan::Scenario scenario = exported(options);
  if (options.scenario.json) {
    const auto lines = unsupported_fields(trainer, scenario);
    plan::Json json{{"trainer", to_string(trainer)}, {"untold", lines}};
    json["text"] = lines.empty() ? plan::Json(trainer_file(trainer, scenario)) : plan::Json();
    fmt::print("{}\n", json.dump(2));
    return lines.empty() ? Done : NegativeAnswer;
  }
  const std::string text = trainer_file(trainer, scenario);
  if (options.out.empty())
    fmt::print("{}", text);
  else
    plan::write_file(options.out, text);
  return Done;
}

Command describe_export(ExportOptions& options) {
  return {
      .name = "export",
      .summary = "Write a scenario's plan as the configuration of another trainer",
      .options = with_scenario(
          options.scenario,
          {{.names = "--for",
            .target = &options.trainer,
            .help = "megatron: Megatron-LM's arguments; torchtitan: a Python configuration (0.3); "
                    "torchtitan-0.2: its TOML; deepspeed: the JSON of its pipeline engine. "
                    "Features that the trainer does not support are listed",
            .value = "TRAINER",
            .choices = models::trainers(),
            .required = true},
           {.names = "--costs",
            .target = &options.costs,
            .help = "Layer costs for choosing stage boundaries that the scenario does not set",
            .value = "FILE"},
           {.names = "-o,--out",
            .target = &options.out,
            .help = "Write to this file instead of printing",
            .value = "FILE"}}),
      .examples =
          "Example: pipewright export plan/scenario.json --for torchtitan -o torchtitan_plan.py"};
}

}  // namespace

Command export_command() { return make_command(describe_export, export_plan); }

}  // namespace pipewright::cli
