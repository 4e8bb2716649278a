#include "commands.hpp"
#include "console.hpp"
#include "interrupt.hpp"
#include "pipewright/plan/comparison.hpp"
#include "planning.hpp"
#include "workload.hpp"

namespace pipewright::cli {
namespace {

struct SimulateOptions {
  ScenarioOptions scenario;
  std::string costs;
  std::string trace;
  std::string svg;
};

std::string table(const plan::StepFigures& figures) {
  auto text = fmt::format("iteration {:.2f} ms\n", 1e3 * figures.iteration.value);
  text += "rank    busy ms  bubble ms  bubble %   peak MB\n";
  for (std::size_t rank = 0; rank < figures.busy.size(); ++rank)
    text += fmt::format("{:<4} {:10.2f} {:10.2f} {:9.1f} {:9.1f}\n", rank,
                        1e3 * figures.busy[rank].value, 1e3 * figures.bubble[rank].value,
                        100 * (figures.bubble[rank] / figures.iteration),
                        static_cast<double>(figures.peak[rank].value) / 1e6);
  return text;
}

int simulate(const SimulateOptions& options) {
  const auto scenario = read_scenario(options.scenario.file, options.scenario.assignments,
                                      options.scenario.data_path);
  catch_interrupts();
  const auto costs = options.costs.empty()
                         ? measure_costs(scenario, Workload(scenario))
                         : plan::layer_costs_from_json(plan::JsonDocument::read(options.costs));
  const Plan plan = make_plan(scenario, costs);
  if (!options.trace.empty())
    plan::write_file(options.trace, plan::to_trace(plan.predicted));
  if (!options.svg.empty())
    plan::write_file(options.svg, plan::to_svg({plan.predicted}, scenario.name));
  const auto figures = plan::figures_of(plan.predicted);
  if (options.scenario.json)
    fmt::print("{}\n", to_json(figures).dump(2));
  else
    fmt::print("{}{}", plan_table(plan, costs), table(figures));
  return Done;
}

}  // namespace

Action add_simulate(CLI::App& program) {
  auto* const command =
      program.add_subcommand("simulate", "Predict time, bubble and memory, without training");
  auto options = std::make_shared<SimulateOptions>();
  add_scenario_options(*command, options->scenario);
  command->add_option("--costs", options->costs, "Layer costs from this file, not measured now")
      ->type_name("FILE");
  command->add_option("--trace", options->trace, "Write the timeline as Chrome trace JSON")
      ->type_name("FILE");
  command->add_option("--svg", options->svg, "Draw the timeline")->type_name("FILE");
  command->footer(
      "Example: pipewright simulate scenarios/gpt-text/scenario.json --costs costs.json --svg "
      "t.svg");
  return [options] { return simulate(*options); };
}

}  // namespace pipewright::cli
