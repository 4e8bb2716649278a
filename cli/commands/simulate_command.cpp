#include "commands/simulate_command.hpp"

#include "exit_code.hpp"
#include "options/scenario_options.hpp"
#include "pipewright/draw/svg.hpp"
#include "pipewright/draw/timeline.hpp"
#include "pipewright/loop/predict/prediction.hpp"
#include "pipewright/loop/predict/sensitivities.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/sim/causes/why_idle.hpp"
#include "pipewright/sim/draws/draw_ranges.hpp"
#include "pipewright/sim/engine/job_simulator.hpp"
#include "pipewright/sim/scenario/device_memory.hpp"
#include "pipewright/trace/files/recorded_days.hpp"
#include "pipewright/trace/files/timeline_file.hpp"
#include "print/cluster_table.hpp"
#include "print/console.hpp"
#include "print/draws_table.hpp"
#include "print/job_table.hpp"
#include "print/plan_table.hpp"
#include "print/prediction_table.hpp"
#include "process/interrupt.hpp"
#include "process/other_programs.hpp"

namespace pipewright::cli {
namespace {

struct SimulateOptions {
  ScenarioOptions scenario;
  std::string costs;
  std::string engine = "native";
  std::string platform;
  std::string trace;
  std::string svg;
  std::string actions;
  std::string explain;
  bool sensitivities = false;
  bool every_rank = false;
  std::optional<int> draws;
  std::string jitter;
  std::optional<std::int64_t> seed;
};

/// A parsed "3@12.5ms" or "0@0.2s"; a number without a unit is milliseconds.
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
  } catch (const std::logic_error&) {  // not a number, or too large
    throw refuse();
  }
}

void write_files(const SimulateOptions& options, const plan::Scenario& scenario,
                 const sim::ScenarioPlan& plan, const loop::Prediction& prediction) {
  if (!options.actions.empty())
    plan::write_file(options.actions, loop::actions_csv(prediction, plan));
  if (!options.trace.empty())
    trace::write_timeline(options.trace, prediction.timeline);
  if (!options.svg.empty())
    plan::write_file(options.svg,
                     draw::to_svg(draw::timeline_scene({prediction.timeline}, scenario.name)));
}

using SimulateOnSimGrid = decltype(&sim::simulate_on_simgrid);

/// Returns the scenario's plan; throws if it does not fit the memory.
sim::ScenarioPlan plan_for(const plan::Scenario& scenario, const plan::LayerCosts& costs) {
  sim::ScenarioPlan plan = sim::lay_out(scenario, costs);
  sim::require_memory(scenario, costs, plan);
  return plan;
}

loop::Prediction predict(const SimulateOptions& options, const plan::Scenario& scenario,
                         const sim::ScenarioPlan& plan, SimulateOnSimGrid simgrid) {
  if (options.engine != "simgrid")
    return loop::predict(scenario, plan);
  return loop::predict(
      scenario, plan,
      simgrid(*plan.structure, plan.costs, options.platform, sim::DeviceTimes::Slowest));
}

/// Throws unless --draws has a record, which must be the only source of jitter.
void require_drawable(const SimulateOptions& options, const plan::Scenario& scenario) {
  if (!options.draws) {
    if (!options.jitter.empty() || options.seed)
      throw plan::InputError(options.seed ? "--seed is only valid with --draws"
                                          : "--jitter is only valid with --draws");
    return;
  }
  if (options.jitter.empty())
    throw plan::InputError(
        "--draws: needs recorded steps to sample from: --jitter FILE, a table or the folder of a "
        "run");
  if (options.engine == "simgrid")
    throw plan::InputError("--draws is only valid with --engine native");
  if (scenario.training.jitter > 0)
    throw plan::InputError(
        "--draws: cannot be combined with training.jitter, because the record already contains the "
        "jitter: remove one of them");
}

/// The samples, and what they were sampled from.
struct Drawn {
  sim::Jitter jitter;
  sim::SamplingOptions options;
  sim::Draws draws;
  sim::SampledRanges ranges;
};

std::optional<Drawn> drawn(const SimulateOptions& options, const plan::Scenario& scenario,
                           const sim::ScenarioPlan& plan) {
  if (!options.draws)
    return {};
  const sim::Jitter jitter(trace::read_record(options.jitter));
  const sim::SamplingOptions how{
      .count = *options.draws,
      .seed = static_cast<std::uint64_t>(options.seed.value_or(scenario.training.seed))};
  return Drawn{jitter, how, sim::draw_iterations(*plan.structure, plan.costs, jitter, how),
               sim::draw_ranges(*plan.structure, plan.costs, jitter, how)};
}

void print_prediction(const SimulateOptions& options, const loop::Prediction& prediction,
                      const sim::ScenarioPlan& plan, const plan::LayerCosts& costs,
                      const sim::Throughput& throughput,
                      const std::vector<models::DeviceMemory>& memory,
                      const std::optional<Drawn>& drawn) {
  if (options.scenario.json) {
    plan::Json json = loop::prediction_json(prediction, plan, costs, throughput, memory);
    json.update(cluster_json(plan));
    if (options.sensitivities)
      json["sensitivities"] = to_json(loop::sensitivities_of(plan, prediction.times), plan, costs);
    if (options.every_rank)
      json["every_rank"] = job_json(plan, sim::JobSimulator(*plan.structure).run(plan.costs));
    if (drawn)
      json["draws"] = draws_json(drawn->draws, drawn->ranges, drawn->options, drawn->jitter);
    fmt::print("{}\n", json.dump(2));
    return;
  }
  fmt::print("{}{}{}", plan_table(plan, costs), cluster_table(plan),
             prediction_table(prediction, plan, costs, throughput, memory));
  if (options.every_rank)
    fmt::print("{}", job_table(plan, sim::JobSimulator(*plan.structure).run(plan.costs)));
  if (drawn)
    fmt::print("{}", draws_table(drawn->draws, drawn->ranges, drawn->options, drawn->jitter));
  if (options.sensitivities)
    fmt::print("{}", sensitivity_table(plan, prediction.times, costs));
}

int simulate(const SimulateOptions& options, SimulateOnSimGrid simgrid) {
  const auto scenario = read_scenario(options.scenario);
  require_drawable(options, scenario);
  const bool on_simgrid = options.engine == "simgrid";
  if (options.every_rank && on_simgrid)
    throw plan::InputError("--every-rank is only valid with --engine native");
  if (!options.platform.empty() && !on_simgrid)
    throw plan::InputError("--platform is only valid with --engine simgrid");
  if (on_simgrid && simgrid == nullptr)
    return become_simgrid_program();
  std::optional<Instant> instant;
  if (!options.explain.empty())
    instant = parse_instant(options.explain);
  sim::sound_program(scenario);  // rejects the scenario before anything is measured
  if (const std::string note = device_warning(scenario); !note.empty())
    say(note);
  catch_interrupts();
  const auto costs = costs_for(scenario, options.costs);
  const sim::ScenarioPlan plan = plan_for(scenario, costs);
  const loop::Prediction prediction = predict(options, scenario, plan, simgrid);
  write_files(options, scenario, plan, prediction);
  if (instant)
    fmt::print(
        "{}\n",
        sim::why_idle(*plan.structure, prediction.times, instant->rank, instant->seconds).sentence);
  else
    print_prediction(options, prediction, plan, costs,
                     sim::throughput_of(scenario, plan, prediction.times.iteration),
                     sim::device_memory(scenario, costs, plan, prediction.peaks),
                     drawn(options, scenario, plan));
  return Done;
}

Command describe(SimulateOptions& options) {
  return {
      .name = "simulate",
      .summary = "Predict time, idle time and memory, without training",
      .options = with_scenario(
          options.scenario,
          {{.names = "--costs",
            .target = &options.costs,
            .help = "Read layer costs from this file instead of measuring them now",
            .value = "FILE"},
           {.names = "--engine",
            .target = &options.engine,
            .help = "native: exact; simgrid: the same durations, but SimGrid simulates transfers "
                    "over the cluster's links or those of --platform",
            .choices = {"native", "simgrid"},
            .shows_default = true},
           {.names = "--platform",
            .target = &options.platform,
            .help = "A SimGrid platform (XML) instead of the scenario's cluster; its hosts are the "
                    "devices in the order of the file",
            .value = "FILE"},
           {.names = "--trace",
            .target = &options.trace,
            .help = "Write the timeline: FILE.pwt for pipewright, otherwise Chrome trace JSON for "
                    "Perfetto",
            .value = "FILE"},
           {.names = "--svg",
            .target = &options.svg,
            .help = "Draw the timeline with idle time by cause, the critical path and memory",
            .value = "FILE"},
           {.names = "--actions",
            .target = &options.actions,
            .help = "Write every instruction with its start, end and slack as CSV",
            .value = "FILE"},
           {.names = "--explain",
            .target = &options.explain,
            .help = "Explain why this rank is idle at this time, such as 2@14.5ms",
            .value = "RANK@TIME"},
           {.names = "--sensitivities",
            .target = &options.sensitivities,
            .help = "Show how much time a faster stage, layer or link would save"},
           {.names = "--every-rank",
            .target = &options.every_rank,
            .help = "Also simulate every device of the job individually, with its own links, speed "
                    "and samples of training.jitter"},
           {.names = "--draws",
            .target = &options.draws,
            .help = "Sample this many iterations from the recorded steps, and show their mean, "
                    "P50, P95 and P99 with confidence intervals",
            .value = "COUNT",
            .numbers = Numbers::Positive},
           {.names = "--jitter",
            .target = &options.jitter,
            .help = "Recorded steps: a table (step, replica, rank, action, seconds), or the folder "
                    "of a run",
            .value = "FILE"},
           {.names = "--seed",
            .target = &options.seed,
            .help = "Seed of the samples; default: training.seed",
            .numbers = Numbers::NotNegative}}),
      .examples =
          "Example: pipewright simulate scenarios/gpt-text/scenario.json --costs costs.json --svg "
          "t.svg"};
}

}  // namespace

Command simulate_command(decltype(&sim::simulate_on_simgrid) simgrid) {
  const auto options = std::make_shared<SimulateOptions>();
  Command command = describe(*options);
  command.run = [options, simgrid] { return simulate(*options, simgrid); };
  return command;
}

}  // namespace pipewright::cli
