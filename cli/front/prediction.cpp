#include "prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/comparison.hpp"
#include "pipewright/sim/contention.hpp"
#include "pipewright/sim/critical_path.hpp"
#include "pipewright/sim/sensitivity.hpp"
#include "pipewright/sim/simulator.hpp"

namespace pipewright::cli {
namespace {

double mega(plan::Bytes bytes) { return static_cast<double>(bytes.value) / 1e6; }

plan::Timeline timeline_of(const Prediction& prediction, const sim::ScenarioPlan& plan,
                           const sim::MemoryCurves& memory) {
  plan::Timeline timeline = sim::timeline_of(*plan.structure, prediction.times);
  timeline.memory = sim::samples_of(memory);
  timeline.idle = prediction.idle.spans;
  for (const int event : prediction.critical)
    timeline.critical.push_back(static_cast<std::size_t>(event));  // one span an event
  return timeline;
}

/// The length of the critical path by what runs on it: stages, transfers, reductions, the rest.
std::vector<std::pair<std::string, double>> critical_shares(const Prediction& prediction,
                                                            const sim::ScenarioPlan& plan) {
  const auto& events = plan.structure->events();
  std::map<std::string, double> shares;
  double until = 0;
  for (const int event : prediction.critical) {
    const plan::Instruction& i = *events[event].instruction;
    const double seconds = prediction.times[event].end - until;
    until = prediction.times[event].end;
    if (plan::is_send(i.kind) || plan::is_receive(i.kind))
      shares["transfers"] += seconds;
    else if (plan::is_reduce(i.kind))
      shares["reductions"] += seconds;
    else if (i.kind == plan::InstructionKind::OptimizerStep)
      shares["optimizer step"] += seconds;
    else
      shares[fmt::format("stage {}", i.stage)] += seconds;
  }
  std::vector<std::pair<std::string, double>> sorted(shares.begin(), shares.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

std::string critical_line(const Prediction& prediction, const sim::ScenarioPlan& plan) {
  std::string text = "critical path:";
  const auto shares = critical_shares(prediction, plan);
  for (std::size_t i = 0; i < shares.size() && i < 6; ++i)
    text += fmt::format("{} {} {:.1f} %", i == 0 ? "" : ",", shares[i].first,
                        100 * shares[i].second / prediction.times.iteration);
  if (shares.size() > 6)
    text += ", …";
  return text + "\n";
}

std::string held_by(const std::vector<sim::Holder>& holders) {
  std::string text;
  for (std::size_t i = 0; i < holders.size() && i < 2; ++i)
    text += fmt::format("{}{} {:.1f}", i == 0 ? "" : ", ", holders[i].name, mega(holders[i].bytes));
  return text + (holders.size() > 2 ? ", …" : "");
}

/// What a stage saves, passed on to its layers: a second less in one of them is a second less in
/// the stage, in the proportions of the layer.
double layer_saving(const plan::LayerCost& layer, const sim::StageSensitivity& stage) {
  const double all = plan::compute_time(layer).value;
  if (!(all > 0))
    return 0;
  return (layer.forward.value * stage.forward + layer.input_gradient.value * stage.input_gradient +
          layer.weight_gradient.value * stage.weight_gradient) /
         all;
}

struct Sensitivities {
  std::vector<sim::StageSensitivity> stages;
  std::vector<sim::LinkSensitivity> links;
};

/// The slopes are those of the native rules, whichever engine timed the rest.
Sensitivities sensitivities_of(const sim::ScenarioPlan& plan) {
  sim::Simulator simulator(*plan.structure);
  const sim::Times& times = simulator.run(plan.costs);
  return {sim::stage_sensitivities(*plan.structure, times, plan.costs),
          sim::link_sensitivities(*plan.structure, times)};
}

}  // namespace

Prediction predict(const plan::Scenario& scenario, const sim::ScenarioPlan& plan, sim::Times times,
                   Sharing sharing) {
  Prediction prediction;
  const sim::Structure& structure = *plan.structure;
  prediction.times = std::move(times);
  prediction.idle = sim::IdleCauses(structure).of(prediction.times);
  prediction.critical = sim::critical_path(structure, prediction.times);
  if (sharing == Sharing::Ignored)
    prediction.bound = sim::in_words(
        sim::shared_link_overlaps(structure, plan.costs, prediction.times), structure);

  sim::MemoryModel model(structure, sim::holding_of(scenario, structure.program()));
  const sim::MemoryCurves& memory = model.curves(plan.costs, prediction.times);
  prediction.peaks = memory.peaks;
  for (int rank = 0; rank < static_cast<int>(memory.peaks.size()); ++rank)
    prediction.at_peaks.push_back(model.holders(plan.costs, prediction.times, rank,
                                                memory.peaks[static_cast<std::size_t>(rank)].time));
  prediction.timeline = timeline_of(prediction, plan, memory);
  return prediction;
}

Prediction predict(const plan::Scenario& scenario, const sim::ScenarioPlan& plan) {
  sim::require_usable(plan.costs, plan.program());
  sim::Simulator simulator(*plan.structure);
  return predict(scenario, plan, simulator.run(plan.costs), Sharing::Ignored);
}

Plan make_plan(const plan::Scenario& scenario, const plan::LayerCosts& costs) {
  Plan plan{sim::lay_out(scenario, costs), {}};
  sim::require_memory(scenario, costs, plan, /*trained=*/true);
  plan.predicted = predict(scenario, plan).timeline;
  return plan;
}

std::string prediction_table(const Prediction& prediction, const sim::ScenarioPlan& plan,
                             const plan::LayerCosts& costs, const sim::Throughput& throughput) {
  const double iteration = prediction.times.iteration;
  auto text = fmt::format("iteration {:.3f} ms, {:.0f} {}/s", 1e3 * iteration,
                          throughput.units_per_s, throughput.unit);
  if (throughput.mfu > 0)
    text += fmt::format(", MFU {:.1f} %", 100 * throughput.mfu);
  if (costs.drift > 0)
    text += fmt::format(
        "\nbetween {:.3f} and {:.3f} ms, as the device drifts: {:.1f} % in the {:.0f} s that its "
        "costs were measured",
        1e3 * iteration * (1 - costs.drift), 1e3 * iteration * (1 + costs.drift), 100 * costs.drift,
        costs.measured_over.value);
  text += "\n" + (prediction.bound.empty() ? "" : prediction.bound + "\n") +
          critical_line(prediction, plan);
  text += "rank     busy ms  bubble ms  bubble %";
  for (const std::string& cause : plan::idle_causes())
    text += fmt::format("  {:>9}", cause);
  text += "    peak MB  at ms      held then, MB\n";
  const auto busy = plan::busy_per_rank(prediction.timeline);
  for (std::size_t rank = 0; rank < busy.size(); ++rank) {
    const double idle = prediction.idle.of_rank(static_cast<int>(rank));
    text += fmt::format("{:<4} {:11.3f} {:10.3f} {:9.1f}", rank, 1e3 * busy[rank].value, 1e3 * idle,
                        100 * idle / iteration);
    for (const double seconds : prediction.idle.by_cause[rank])
      text += fmt::format("  {:9.3f}", 1e3 * seconds);
    text += fmt::format("  {:9.1f}  {:<9.3f}  {}\n", mega(prediction.peaks[rank].held),
                        1e3 * prediction.peaks[rank].time, held_by(prediction.at_peaks[rank]));
  }
  return text;
}

std::string sensitivity_table(const sim::ScenarioPlan& plan, const plan::LayerCosts& costs) {
  const Sensitivities found = sensitivities_of(plan);
  std::string text =
      "1 ms less a microbatch saves, in ms an iteration:\n"
      "stage  whole  forward  input gradient  weight gradient\n";
  for (std::size_t s = 0; s < found.stages.size(); ++s)
    text += fmt::format("{:<5} {:6.2f} {:8.2f} {:15.2f} {:16.2f}\n", s, found.stages[s].all,
                        found.stages[s].forward, found.stages[s].input_gradient,
                        found.stages[s].weight_gradient);
  std::vector<std::pair<double, std::size_t>> layers;
  for (std::size_t s = 0; s < found.stages.size(); ++s)
    for (int l = plan.partition.boundaries[s]; l < plan.partition.boundaries[s + 1]; ++l)
      layers.emplace_back(-layer_saving(costs.layers[static_cast<std::size_t>(l)], found.stages[s]),
                          l);
  std::sort(layers.begin(), layers.end());
  text += "layers that matter most:";
  for (std::size_t i = 0; i < layers.size() && i < 5; ++i)
    text += fmt::format("{} {} \"{}\" {:.2f}", i == 0 ? "" : ",", layers[i].second,
                        costs.layers[layers[i].second].name, -layers[i].first);
  text +=
      "\ntransfers: 1 ms less latency, or less on the link, of every transfer between two ranks\n";
  for (const sim::LinkSensitivity& link : found.links)
    text +=
        fmt::format("{} to {}: {:.2f}, {:.2f}\n", link.from, link.to, link.latency, link.occupancy);
  return text;
}

std::string actions_csv(const Prediction& prediction, const sim::ScenarioPlan& plan) {
  sim::Simulator simulator(*plan.structure);
  const auto slacks = sim::slack(*plan.structure, simulator.run(plan.costs));
  std::vector<char> critical(slacks.size(), 0);
  for (const int event : prediction.critical)
    critical[static_cast<std::size_t>(event)] = 1;
  std::string text = "rank,action,start_s,end_s,slack_s,critical\n";
  for (std::size_t event = 0; event < slacks.size(); ++event) {
    const plan::Span& span = prediction.timeline.spans[event];  // one an event
    text += fmt::format("{},{},{},{},{},{}\n", span.rank, span.action, span.start.value,
                        span.end.value, slacks[event], critical[event] == 0 ? 0 : 1);
  }
  return text;
}

plan::Json prediction_json(const Prediction& prediction, const sim::ScenarioPlan& plan,
                           const plan::LayerCosts& costs, const sim::Throughput& throughput) {
  plan::Json json = plan::to_json(plan::figures_of(prediction.timeline));
  if (costs.drift > 0) {
    json["drift"] = costs.drift;
    json["iteration_between_s"] = {prediction.times.iteration * (1 - costs.drift),
                                   prediction.times.iteration * (1 + costs.drift)};
  }
  json[throughput.unit + "_per_s"] = throughput.units_per_s;
  if (throughput.mfu > 0)
    json["mfu"] = throughput.mfu;
  if (!prediction.bound.empty())
    json["lower_bound"] = prediction.bound;
  json["idle_s"] = plan::Json::array();
  for (const auto& causes : prediction.idle.by_cause) {
    plan::Json rank;
    for (std::size_t cause = 0; cause < causes.size(); ++cause)
      rank[plan::idle_causes()[cause]] = causes[cause];
    json["idle_s"].push_back(std::move(rank));
  }
  json["critical_path_s"] = plan::Json::object();
  for (const auto& [what, seconds] : critical_shares(prediction, plan))
    json["critical_path_s"][what] = seconds;
  json["peaks"] = plan::Json::array();
  for (std::size_t rank = 0; rank < prediction.peaks.size(); ++rank) {
    plan::Json holders = plan::Json::array();
    for (const sim::Holder& holder : prediction.at_peaks[rank])
      holders.push_back({{"name", holder.name}, {"bytes", holder.bytes.value}});
    json["peaks"].push_back({{"bytes", prediction.peaks[rank].held.value},
                             {"time_s", prediction.peaks[rank].time},
                             {"held_by", std::move(holders)}});
  }
  return json;
}

plan::Json sensitivity_json(const sim::ScenarioPlan& plan, const plan::LayerCosts& costs) {
  const Sensitivities found = sensitivities_of(plan);
  plan::Json json{{"stages", plan::Json::array()},
                  {"layers", plan::Json::array()},
                  {"links", plan::Json::array()}};
  for (std::size_t s = 0; s < found.stages.size(); ++s) {
    const sim::StageSensitivity& stage = found.stages[s];
    json["stages"].push_back({{"all", stage.all},
                              {"forward", stage.forward},
                              {"input_gradient", stage.input_gradient},
                              {"weight_gradient", stage.weight_gradient}});
    for (int l = plan.partition.boundaries[s]; l < plan.partition.boundaries[s + 1]; ++l)
      json["layers"].push_back(
          {{"name", costs.layers[static_cast<std::size_t>(l)].name},
           {"saved", layer_saving(costs.layers[static_cast<std::size_t>(l)], stage)}});
  }
  for (const sim::LinkSensitivity& link : found.links)
    json["links"].push_back({{"from", link.from},
                             {"to", link.to},
                             {"latency", link.latency},
                             {"occupancy", link.occupancy}});
  return json;
}

}  // namespace pipewright::cli
