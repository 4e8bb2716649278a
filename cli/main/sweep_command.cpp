#include <algorithm>

#include "commands.hpp"
#include "console.hpp"
#include "interrupt.hpp"
#include "other_programs.hpp"
#include "pipewright/draw/chart.hpp"
#include "pipewright/draw/svg.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/sim/ranges.hpp"
#include "pipewright/sim/sweep.hpp"
#include "scenario_options.hpp"

namespace pipewright::cli {
namespace {

struct SweepOptions {
  ScenarioOptions scenario;
  std::string costs;
  std::string csv;
  std::string svg;
};

/// The combinations to simulate and what came of them.
struct Sweep {
  std::string scenario;                 // its name
  std::vector<sim::SweptField> varied;  // the fields with several values
  std::vector<sim::SweepRow> rows;
};

plan::Scenario scenario_with(const plan::JsonDocument& base,
                             const std::vector<std::string>& assignments, bool between_nodes) {
  auto document = base;
  for (const std::string& assignment : assignments)
    for (const std::string& field : sim::expanded(assignment, between_nodes))
      document.set(field);
  return plan::scenario_from_json(document);
}

/// The values of the varied fields among the assignments of one combination.
std::vector<std::string> varied_values(const std::vector<std::string>& assignments,
                                       const std::vector<sim::SweptField>& fields) {
  std::vector<std::string> values;
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].values.size() > 1)
      values.push_back(assignments[i].substr(fields[i].field.size() + 1));
  return values;
}

/// The quickest by time a unit of work, which alone compares batches of unequal size.
const sim::SweepRow* best_of(const std::vector<sim::SweepRow>& rows) {
  const sim::SweepRow* best = nullptr;
  for (const sim::SweepRow& row : rows)
    if (row.refusal.empty() &&
        (best == nullptr || row.throughput.units_per_s > best->throughput.units_per_s))
      best = &row;
  return best;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string table(const Sweep& sweep) {
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
  text += fmt::format("iteration ms  {:>10}/s  bubble %   peak MB\n", unit);
  const sim::SweepRow* best = best_of(sweep.rows);
  for (const sim::SweepRow& row : sweep.rows) {
    for (std::size_t f = 0; f < widths.size(); ++f)
      text += fmt::format("{:<{}}  ", row.values[f], widths[f]);
    if (row.refusal.empty())
      text += fmt::format("{:>12.3f}  {:>{}.0f}  {:>8.1f}  {:>8.1f}{}{}\n", 1e3 * row.iteration_s,
                          row.throughput.units_per_s, std::max<std::size_t>(10, unit.size()) + 2,
                          100 * row.bubble, static_cast<double>(row.peak.value) / 1e6,
                          &row == best ? "  best" : "", row.lower_bound ? "  lower bound" : "");
    else
      text += fmt::format("{:>12}  {}\n", "-", first_line(row.refusal));
  }
  return text;
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos)
    return text;
  std::string cell = "\"";
  for (const char c : text)
    cell += c == '"' ? std::string("\"\"") : std::string(1, c);
  return cell + "\"";
}

std::string csv(const Sweep& sweep) {
  std::string text;
  for (const sim::SweptField& field : sweep.varied)
    text += quoted(field.field) + ",";
  text += "iteration_s,units_per_s,mfu,bubble,peak_bytes,lower_bound";
  for (const std::string& cause : plan::idle_causes())
    text += ",idle_" + cause + "_s";
  text += ",refusal\n";
  for (const sim::SweepRow& row : sweep.rows) {
    for (const std::string& value : row.values)
      text += quoted(value) + ",";
    if (row.refusal.empty()) {
      text += fmt::format("{},{},{},{},{},{}", row.iteration_s, row.throughput.units_per_s,
                          row.throughput.mfu, row.bubble, row.peak.value, row.lower_bound ? 1 : 0);
      for (const double seconds : row.idle_s)
        text += fmt::format(",{}", seconds);
    } else {
      text += std::string(5 + plan::idle_causes().size(), ',');
    }
    text += "," + quoted(row.refusal) + "\n";
  }
  return text;
}

plan::Json to_json(const Sweep& sweep) {
  plan::Json rows = plan::Json::array();
  for (const sim::SweepRow& row : sweep.rows) {
    plan::Json json{{"set", plan::Json::object()}};
    for (std::size_t f = 0; f < sweep.varied.size(); ++f)
      json["set"][sweep.varied[f].field] = row.values[f];
    if (!row.refusal.empty()) {
      json["refusal"] = row.refusal;
    } else {
      json["iteration_s"] = row.iteration_s;
      json[row.throughput.unit + "_per_s"] = row.throughput.units_per_s;
      if (row.throughput.mfu > 0)
        json["mfu"] = row.throughput.mfu;
      json["bubble"] = row.bubble;
      for (std::size_t cause = 0; cause < row.idle_s.size(); ++cause)
        json["idle_s"][plan::idle_causes()[cause]] = row.idle_s[cause];
      json["peak_bytes"] = row.peak.value;
      json["lower_bound"] = row.lower_bound;
    }
    rows.push_back(std::move(json));
  }
  return {{"format", "pipewright/sweep/1"}, {"rows", std::move(rows)}};
}

std::optional<double> number_of(const std::string& text) {
  try {
    std::size_t read = 0;
    const double value = std::stod(text, &read);
    return read == text.size() ? std::optional(value) : std::nullopt;
  } catch (const std::logic_error&) {
    return {};
  }
}

/// Throughput over the field with the most values; one line for each combination of the others.
draw::Chart chart_of(const Sweep& sweep) {
  const auto widest = static_cast<std::size_t>(
      std::max_element(sweep.varied.begin(), sweep.varied.end(),
                       [](const sim::SweptField& a, const sim::SweptField& b) {
                         return a.values.size() < b.values.size();
                       }) -
      sweep.varied.begin());
  const sim::SweptField& x = sweep.varied[widest];
  draw::Chart chart;
  chart.title = fmt::format("{}: {} combinations", sweep.scenario, sweep.rows.size());
  chart.x_label = x.field;
  const bool numbers = std::all_of(x.values.begin(), x.values.end(),
                                   [](const std::string& v) { return number_of(v).has_value(); });
  if (numbers) {
    const double first = number_of(x.values.front()).value();
    const double last = number_of(x.values.back()).value();
    chart.log_x = first > 0 && last / first >= 8;
  } else {
    chart.categories = x.values;
  }
  for (const sim::SweepRow& row : sweep.rows) {
    std::string name;
    for (std::size_t f = 0; f < sweep.varied.size(); ++f)
      if (f != widest)
        name +=
            fmt::format("{}{} {}", name.empty() ? "" : ", ", sweep.varied[f].field, row.values[f]);
    auto line = std::find_if(chart.lines.begin(), chart.lines.end(),
                             [&](const draw::ChartLine& known) { return known.name == name; });
    if (line == chart.lines.end())
      line = chart.lines.insert(line, {name, {}});
    const std::string& value = row.values[widest];
    const double at = numbers
                          ? number_of(value).value()
                          : static_cast<double>(std::find(x.values.begin(), x.values.end(), value) -
                                                x.values.begin());
    if (row.refusal.empty())
      line->points.emplace_back(at, row.throughput.units_per_s);
    if (!row.throughput.unit.empty())
      chart.y_label = row.throughput.unit + " per second";
  }
  return chart;
}

Sweep run_sweep(const SweepOptions& options) {
  auto base = plan::JsonDocument::read(options.scenario.file);
  const bool between_nodes = base.root().contains("cluster") &&
                             base.root()["cluster"].is_object() &&
                             base.root()["cluster"].contains("between_nodes");
  std::vector<sim::SweptField> fields;
  for (const std::string& assignment : options.scenario.assignments)
    fields.push_back(sim::parse_swept_field(assignment));
  Sweep swept;
  for (const sim::SweptField& field : fields)
    if (field.values.size() > 1)
      swept.varied.push_back(field);
  if (swept.varied.empty())
    throw plan::InputError(
        "nothing varies: give a field several values, such as --set pipeline.microbatches=4..64x2");
  const auto all = sim::combinations(fields);
  const plan::Scenario first = scenario_with(base, all.front(), between_nodes);
  swept.scenario = first.name;
  catch_interrupts();
  const auto costs = costs_for(first, options.costs);
  sim::StructureCache structures;
  ProgressLine line;
  swept.rows = sim::sweep(
      all.size(),
      [&](std::size_t i) {
        sim::SweepRow row;
        try {
          row = sim::sweep_row(scenario_with(base, all[i], between_nodes), costs, structures);
        } catch (const plan::InputError& error) {
          row.refusal = error.what();
          row.bad_input = true;
        }
        row.values = varied_values(all[i], fields);
        return row;
      },
      [&](std::size_t done) { line.show(fmt::format("sweep: {} of {}", done, all.size())); },
      interrupted());
  if (interrupted())
    throw Stopped{};
  return swept;
}

int sweep(const SweepOptions& options) {
  const Sweep swept = run_sweep(options);
  const bool none = best_of(swept.rows) == nullptr;
  const bool all_bad = std::all_of(swept.rows.begin(), swept.rows.end(),
                                   [](const sim::SweepRow& row) { return row.bad_input; });
  if (all_bad)
    throw plan::InputError(swept.rows.front().refusal);
  if (!options.csv.empty())
    plan::write_file(options.csv, csv(swept));
  if (!options.svg.empty())
    plan::write_file(options.svg, draw::to_svg(draw::chart_scene(chart_of(swept))));
  if (options.scenario.json)
    fmt::print("{}\n", to_json(swept).dump(2));
  else
    fmt::print("{}", table(swept));
  return none ? NegativeAnswer : Done;
}

Command describe(SweepOptions& options) {
  Command command{
      .name = "sweep",
      .summary = "Simulate every combination of some values, on all cores",
      .options = with_scenario(
          options.scenario,
          {{.names = "--costs",
            .target = &options.costs,
            .help = "Layer costs from this file, not measured now (once, for the first "
                    "combination)",
            .value = "FILE"},
           {.names = "--csv",
            .target = &options.csv,
            .help = "Write every figure of every combination",
            .value = "FILE"},
           {.names = "--svg",
            .target = &options.svg,
            .help = "Draw throughput over the field with most values",
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
