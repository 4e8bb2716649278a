#include "pipewright/loop/predict/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/stopped.hpp"
#include "pipewright/plan/timeline/timeline.hpp"

namespace pipewright::loop {
namespace {

bool has_between_nodes(const plan::JsonDocument& base) {
  const plan::Json& root = base.root();
  return root.contains("cluster") && root["cluster"].is_object() &&
         root["cluster"].contains("between_nodes");
}

plan::Scenario scenario_with(const plan::JsonDocument& base,
                             const std::vector<std::string>& assignments, bool between_nodes) {
  auto document = base;
  for (const std::string& assignment : assignments)
    for (const std::string& field : sim::expanded(assignment, between_nodes))
      document.set(field);
  return plan::scenario_from_json(document);
}

/// Returns the values of the varied fields in the assignments of one combination.
std::vector<std::string> varied_values(const std::vector<std::string>& assignments,
                                       const std::vector<sim::SweptField>& fields) {
  std::vector<std::string> values;
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].values.size() > 1)
      values.push_back(assignments[i].substr(fields[i].field.size() + 1));
  return values;
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos)
    return text;
  std::string cell = "\"";
  for (const char c : text)
    cell += c == '"' ? std::string("\"\"") : std::string(1, c);
  return cell + "\"";
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

}  // namespace

std::vector<sim::SweptField> varied_fields(const std::vector<sim::SweptField>& fields) {
  std::vector<sim::SweptField> varied;
  for (const sim::SweptField& field : fields)
    if (field.values.size() > 1)
      varied.push_back(field);
  return varied;
}

plan::Scenario first_scenario(const SweptScenario& swept) {
  return scenario_with(swept.base, sim::combinations(swept.fields).front(),
                       has_between_nodes(swept.base));
}

Sweep run_sweep(const SweptScenario& wanted, const plan::LayerCosts& costs,
                const std::function<void(std::size_t done, std::size_t of)>& progress,
                const std::atomic<bool>& stop) {
  Sweep swept;
  swept.varied = varied_fields(wanted.fields);
  swept.scenario = first_scenario(wanted).name;
  const bool between_nodes = has_between_nodes(wanted.base);
  const auto all = sim::combinations(wanted.fields);
  sim::StructureCache structures;
  swept.rows = sim::sweep(
      all.size(),
      [&](std::size_t i) {
        sim::SweepRow row;
        try {
          row =
              sim::sweep_row(scenario_with(wanted.base, all[i], between_nodes), costs, structures);
        } catch (const plan::InputError& error) {
          row.refusal = error.what();
          row.bad_input = true;
        }
        row.values = varied_values(all[i], wanted.fields);
        return row;
      },
      [&](std::size_t done) { progress(done, all.size()); }, stop);
  if (stop)
    throw plan::Stopped{};
  return swept;
}

const sim::SweepRow* best_of(const std::vector<sim::SweepRow>& rows) {
  const sim::SweepRow* best = nullptr;
  for (const sim::SweepRow& row : rows)
    if (row.refusal.empty() &&
        (best == nullptr || row.throughput.units_per_s > best->throughput.units_per_s))
      best = &row;
  return best;
}

std::string to_csv(const Sweep& sweep) {
  std::string text;
  for (const sim::SweptField& field : sweep.varied)
    text += quoted(field.field) + ",";
  text += "iteration_s,units_per_s,mfu,bubble,peak_bytes";
  for (const std::string& cause : plan::idle_causes())
    text += ",idle_" + cause + "_s";
  text += ",refusal\n";
  for (const sim::SweepRow& row : sweep.rows) {
    for (const std::string& value : row.values)
      text += quoted(value) + ",";
    if (row.refusal.empty()) {
      text += fmt::format("{},{},{},{},{}", row.iteration_s, row.throughput.units_per_s,
                          row.throughput.mfu, row.bubble, row.peak.value);
      for (const double seconds : row.idle_s)
        text += fmt::format(",{}", seconds);
    } else {
      text += std::string(4 + plan::idle_causes().size(), ',');
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
    }
    rows.push_back(std::move(json));
  }
  return {{"format", "pipewright/sweep/1"}, {"rows", std::move(rows)}};
}

namespace {

/// Returns the index of the field with the most values, which is the x axis of the chart.
std::size_t widest_field(const Sweep& sweep) {
  const auto fewer = [](const sim::SweptField& a, const sim::SweptField& b) {
    return a.values.size() < b.values.size();
  };
  return static_cast<std::size_t>(
      std::max_element(sweep.varied.begin(), sweep.varied.end(), fewer) - sweep.varied.begin());
}

/// Returns the values of all fields but the one on the x axis. Rows with the same name form one
/// line.
std::string line_name(const Sweep& sweep, const sim::SweepRow& row, std::size_t along_x) {
  std::string name;
  for (std::size_t f = 0; f < sweep.varied.size(); ++f)
    if (f != along_x)
      name +=
          fmt::format("{}{} {}", name.empty() ? "" : ", ", sweep.varied[f].field, row.values[f]);
  return name;
}

}  // namespace

draw::Chart chart_of(const Sweep& sweep) {
  const std::size_t widest = widest_field(sweep);
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
    const std::string name = line_name(sweep, row, widest);
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

}  // namespace pipewright::loop
