#include "commands.hpp"
#include "console.hpp"
#include "interrupt.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/sim/explain.hpp"
#include "prediction.hpp"
#include "schedule_check.hpp"
#include "workload.hpp"

namespace pipewright::cli {
namespace {

struct SimulateOptions {
  ScenarioOptions scenario;
  std::string costs;
  std::string schedule;
  Engine engine;
  std::string platform;
  std::string trace;
  std::string svg;
  std::string actions;
  std::string explain;
  bool sensitivities = false;
};

/// "3@12.5ms", "0@0.2s"; a number alone is milliseconds.
struct Instant {
  int rank = 0;
  double seconds = 0;
};

Instant parse_instant(const std::string& text) {
  const auto refuse = [&] {
    return plan::InputError(fmt::format(
        "--explain {}: write RANK@TIME, such as 2@14.5ms (or us, or s; a number alone is in ms)",
        text));
  };
  const auto at = text.find('@');
  if (at == std::string::npos || at == 0)
    throw refuse();
  try {
    std::size_t read = 0;
    Instant instant;
    instant.rank = std::stoi(text.substr(0, at), &read);
    if (read != at)
      throw refuse();
    const std::string time = text.substr(at + 1);
    instant.seconds = std::stod(time, &read);
    const std::string unit = time.substr(read);
    if (unit != "" && unit != "ms" && unit != "us" && unit != "s")
      throw refuse();
    instant.seconds *= unit == "s" ? 1 : unit == "us" ? 1e-6 : 1e-3;
    return instant;
  } catch (const std::logic_error&) {  // no number, or one that is too large
    throw refuse();
  }
}

/// A Program as it was written, such as by `run`. It is read, and proved, under the communicators
/// that deadlock least: that its own do is an answer, which the simulator gives, not bad input.
plan::Program program_from_json(const std::string& file) {
  auto document = plan::JsonDocument::read(file);
  const auto replaced = [&](const std::string& key, const std::string& word) {
    const plan::Json& root = document.root();
    if (!root.is_object() || !root.contains(key) || !root[key].is_string())
      return std::string();  // reading says what is wrong
    std::string written = root[key];
    document.set(key + "=" + word);
    return written;
  };
  const std::string communicators = replaced("communicators", "edge");
  const std::string transfers = replaced("transfers", "eager");
  plan::Program program = plan::program_from_json(document);
  program.communicators = plan::parse_communicator_layout(communicators);
  program.transfers = plan::parse_transfer_mode(transfers);
  return program;
}

/// A file's order and the Program that it becomes. What is no sound order is bad input; that the
/// scenario's communicators deadlock is an answer, which the simulator gives.
plan::Program program_from(const std::string& file, const plan::Scenario& scenario) {
  if (file.ends_with(".json"))
    return program_from_json(file);
  plan::LoweringOptions options = sim::lowering_of(scenario);
  options.communicators = plan::CommunicatorLayout::Edge;
  options.transfers = plan::TransferMode::Eager;
  try {
    plan::Program program = check_schedule(file, options).program;
    program.communicators = scenario.pipeline.communicators;
    program.transfers = scenario.pipeline.transfers;
    return program;
  } catch (const plan::Infeasible& unsound) {
    throw plan::InputError(unsound.what());
  }
}

void write_files(const SimulateOptions& options, const plan::Scenario& scenario,
                 const sim::ScenarioPlan& plan, const Prediction& prediction) {
  if (!options.actions.empty())
    plan::write_file(options.actions, actions_csv(prediction, plan));
  if (!options.trace.empty())
    plan::write_file(options.trace, plan::to_trace(prediction.timeline));
  if (!options.svg.empty())
    plan::write_file(options.svg, plan::to_svg({prediction.timeline}, scenario.name));
}

int simulate(const SimulateOptions& options) {
  const auto scenario = read_scenario(options.scenario.file, options.scenario.assignments,
                                      options.scenario.data_path);
  if (!options.platform.empty() && options.engine.name != "simgrid")
    throw plan::InputError("--platform is for --engine simgrid");
  const bool explains = !options.explain.empty();
  const Instant instant = explains ? parse_instant(options.explain) : Instant{};
  if (options.schedule.empty())
    sim::sound_program(scenario);  // refuses before anything is measured
  catch_interrupts();
  const auto costs = options.costs.empty()
                         ? measure_costs(scenario, Workload(scenario))
                         : plan::layer_costs_from_json(plan::JsonDocument::read(options.costs));
  const sim::ScenarioPlan plan =
      options.schedule.empty()
          ? sim::lay_out(scenario, costs)
          : sim::lay_out(scenario, costs, program_from(options.schedule, scenario));
  sim::require_memory(scenario, costs, plan);
  const Prediction prediction = predict(scenario, plan, {options.engine.name, options.platform});
  write_files(options, scenario, plan, prediction);
  if (explains) {
    fmt::print("{}\n",
               sim::explain(*plan.structure, prediction.times, instant.rank, instant.seconds));
    return Done;
  }
  const sim::Throughput throughput = sim::throughput_of(scenario, plan, prediction.times.iteration);
  if (options.scenario.json) {
    plan::Json json = prediction_json(prediction, plan, throughput);
    if (options.sensitivities)
      json["sensitivities"] = sensitivity_json(plan, costs);
    fmt::print("{}\n", json.dump(2));
    return Done;
  }
  fmt::print("{}{}", plan_table(plan, costs), prediction_table(prediction, plan, throughput));
  if (options.sensitivities)
    fmt::print("{}", sensitivity_table(plan, costs));
  return Done;
}

}  // namespace

Action add_simulate(CLI::App& program) {
  auto* const command =
      program.add_subcommand("simulate", "Predict time, idle time and memory, without training");
  auto options = std::make_shared<SimulateOptions>();
  add_scenario_options(*command, options->scenario);
  command->add_option("--costs", options->costs, "Layer costs from this file, not measured now")
      ->type_name("FILE");
  command
      ->add_option("--schedule", options->schedule,
                   "Simulate the order of this CSV file, or this Program (program.json of a run), "
                   "not the scenario's schedule")
      ->type_name("FILE");
  command
      ->add_option("--engine", options->engine.name,
                   "native: exact where no link is shared; simgrid: shares links among transfers")
      ->check(CLI::IsMember({"native", "simgrid"}))
      ->capture_default_str();
  command
      ->add_option("--platform", options->platform,
                   "A SimGrid platform (XML) instead of the scenario's cluster; its hosts are the "
                   "devices in their order")
      ->type_name("FILE");
  command
      ->add_option("--trace", options->trace,
                   "Write the timeline as Chrome trace JSON, for Perfetto")
      ->type_name("FILE");
  command
      ->add_option("--svg", options->svg,
                   "Draw the timeline: idle time by cause, the critical path, memory")
      ->type_name("FILE");
  command
      ->add_option("--actions", options->actions,
                   "Write every instruction with its start, end and slack as CSV")
      ->type_name("FILE");
  command
      ->add_option("--explain", options->explain,
                   "Say why this rank is idle at this time, such as 2@14.5ms")
      ->type_name("RANK@TIME");
  command->add_flag("--sensitivities", options->sensitivities,
                    "Show what a faster stage, layer or link would save");
  command->footer(
      "Example: pipewright simulate scenarios/gpt-text/scenario.json --costs costs.json --svg "
      "t.svg");
  return [options] { return simulate(*options); };
}

}  // namespace pipewright::cli
