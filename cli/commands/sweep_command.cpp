#include <algorithm>

#include "commands/commands.hpp"
#include "exit_code.hpp"
#include "options/scenario_options.hpp"
#include "pipewright/draw/chart.hpp"
#include "pipewright/draw/svg.hpp"
#include "pipewright/loop/predict/sweep.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/quantity_text.hpp"
#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/sim/scenario/ranges.hpp"
#include "pipewright/sim/scenario/sweep.hpp"
#include "print/console.hpp"
#include "process/interrupt.hpp"
#include "process/other_programs.hpp"

namespace pipewright::cli {
namespace {

struct SweepOptions {
  ScenarioOptions scenario;
  std::string costs;
  std::string csv;
  std::string svg;
};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string table(const loop::Sweep& sweep) {
  std::vector<std::size_t> widths;
  std::string text;
  for (std::size_t f = 0; f < sweep.varied.size(); ++f) {
    std::size_t width = sweep.varied[f].field.size();
    for (const std::string& value : sweep.varied[f].values)
      width = std::max(width, value.size());
    widths.push_back(width);
    text += fmt::format("{:<{}}  ", sweep.varied[f].field, width);
  }
  const std::string unit = sweep.rows.front().throughput.unit.empty()
                               ? std::string("units")
                               : sweep.rows.front().throughput.unit;
  text += fmt::format("   iteration  {:>10}/s  bubble %    memory\n", unit);
  const sim::SweepRow* best = loop::best_of(sweep.rows);
  for (const sim::SweepRow& row : sweep.rows) {
    for (std::size_t f = 0; f < widths.size(); ++f)
      text += fmt::format("{:<{}}  ", row.values[f], widths[f]);
    if (row.refusal.empty())
      text +=
          fmt::format("{:>12}  {:>{}.0f}  {:>8.1f}  {:>8}{}\n", plan::time_text(row.iteration_s),
                      row.throughput.units_per_s, std::max<std::size_t>(10, unit.size()) + 2,
                      100 * row.bubble, plan::bytes_text(row.peak), &row == best ? "  best" : "");
    else
      text += fmt::format("{:>12}  {}\n", "-", first_line(row.refusal));
  }
  return text;
}

loop::Sweep run(const SweepOptions& options) {
  loop::SweptScenario wanted{read_document(options.scenario), {}};
  for (const std::string& assignment : options.scenario.assignments)
    wanted.fields.push_back(sim::parse_swept_field(assignment));
  if (loop::varied_fields(wanted.fields).empty())
    throw plan::InputError(
        "nothing varies: give a field several values, such as --set pipeline.microbatches=4..64x2");
  const plan::Scenario first = loop::first_scenario(wanted);
  catch_interrupts();
  const auto costs = costs_for(first, options.costs);
  ProgressLine line;
  return loop::run_sweep(
      wanted, costs,
      [&](std::size_t done, std::size_t of) {
        line.show(fmt::format("sweep: {} of {}", done, of));
      },
      interrupted());
}

int sweep(const SweepOptions& options) {
  const loop::Sweep swept = run(options);
  const bool none = loop::best_of(swept.rows) == nullptr;
  const bool all_bad = std::all_of(swept.rows.begin(), swept.rows.end(),
                                   [](const sim::SweepRow& row) { return row.bad_input; });
  if (all_bad)
    throw plan::InputError(swept.rows.front().refusal);
  if (!options.csv.empty())
    plan::write_file(options.csv, loop::to_csv(swept));
  if (!options.svg.empty())
    plan::write_file(options.svg, draw::to_svg(draw::chart_scene(loop::chart_of(swept))));
  if (options.scenario.json)
    fmt::print("{}\n", to_json(swept).dump(2));
  else
    fmt::print("{}", table(swept));
  return none ? NegativeAnswer : Done;
}

Command describe(SweepOptions& options) {
  Command command{
      .name = "sweep",
      .summary = "Simulate all combinations of given values, on all cores",
      .options = with_scenario(options.scenario,
                               {{.names = "--costs",
                                 .target = &options.costs,
                                 .help = "Read layer costs from this file instead of measuring "
                                         "them now (once, for the first combination)",
                                 .value = "FILE"},
                                {.names = "--csv",
                                 .target = &options.csv,
                                 .help = "Write all figures of all combinations",
                                 .value = "FILE"},
                                {.names = "--svg",
                                 .target = &options.svg,
                                 .help = "Draw the throughput over the field with the most values",
                                 .value = "FILE"}}),
      .examples =
          "Example: pipewright sweep scenarios/gpt-text/scenario.json --costs costs.json --set "
          "pipeline.schedule=gpipe,1f1b --set pipeline.microbatches=4..64x2 --svg sweep.svg"};
  for (Option& option : command.options)
    if (option.names == "--set") {
      option.required = true;
      option.value = "FIELD=VALUES";
      option.help =
          "A field of the scenario and its values: 4,8,12 or 4..64 or 4..64+4 or 4..64x2. "
          "link.bandwidth and link.latency mean both links of the cluster; may be repeated";
    }
  return command;
}

}  // namespace

Command sweep_command() { return make_command(describe, sweep); }

}  // namespace pipewright::cli
