#include "pipewright/loop/predict/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "pipewright/loop/compare/action_errors.hpp"
#include "pipewright/plan/costs/pair_times.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/sim/causes/critical_path.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "pipewright/sim/structure/durations.hpp"

namespace pipewright::loop {
namespace {

/// Marks the time that each action spends in tensor-parallel communication. All actions of a kind
/// on a stage have the same share of it, less the communication that overlaps with the action they
/// are fused with.
void mark_shards(plan::Timeline& timeline, const sim::ScenarioPlan& plan) {
  for (int event = 0; event < plan.structure->size(); ++event) {
    const plan::Instruction& i = *plan.structure->events()[event].instruction;
    const plan::Work work = plan::traits_of(i.kind).work;
    const plan::StageCost& stage = plan.costs.stages[static_cast<std::size_t>(i.stage)];
    const plan::Seconds hidden = sim::hidden_in_pair(*plan.structure, plan.costs, event);
    const plan::Seconds shards = plan::shards_of(work, stage) - hidden;
    const double all = (plan::time_of(work, stage) - hidden).value;
    if (shards == plan::Seconds{} || !(all > 0))
      continue;
    plan::Span& span = timeline.spans[static_cast<std::size_t>(event)];
    span.shards = (span.end - span.start) * (shards.value / all);
  }
}

plan::Timeline timeline_of(const Prediction& prediction, const sim::ScenarioPlan& plan,
                           const sim::MemoryCurves& memory) {
  plan::Timeline timeline = sim::timeline_of(*plan.structure, prediction.times);
  timeline.memory = sim::samples_of(memory);
  mark_shards(timeline, plan);
  timeline.idle = prediction.idle.spans;
  for (const int event : prediction.critical)
    timeline.critical.push_back(static_cast<std::size_t>(event));  // one span per event
  return timeline;
}

}  // namespace

Prediction predict(const plan::Scenario& scenario, const sim::ScenarioPlan& plan,
                   sim::Times times) {
  Prediction prediction;
  const sim::Structure& structure = *plan.structure;
  prediction.times = std::move(times);
  prediction.idle = sim::IdleCauses(structure).of(prediction.times);
  prediction.critical = sim::critical_path(structure, prediction.times);

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
  return predict(scenario, plan, simulator.run_shared(plan.costs));
}

std::vector<std::pair<std::string, double>> critical_shares(const sim::Structure& structure,
                                                            const sim::Times& times,
                                                            const std::vector<int>& critical) {
  const auto& events = structure.events();
  std::map<std::string, double> shares;
  double until = 0;
  for (const int event : critical) {
    const plan::Instruction& i = *events[event].instruction;
    const double seconds = times[event].end - until;
    until = times[event].end;
    if (plan::is_send(i.kind) || plan::is_receive(i.kind))
      shares["transfers"] += seconds;
    else if (plan::is_collective(i.kind))
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

std::string actions_csv(const Prediction& prediction, const sim::ScenarioPlan& plan) {
  const auto slacks = sim::slack(*plan.structure, prediction.times);
  std::vector<char> critical(slacks.size(), 0);
  for (const int event : prediction.critical)
    critical[static_cast<std::size_t>(event)] = 1;
  std::string text = "rank,action,start_s,end_s,slack_s,critical\n";
  for (std::size_t event = 0; event < slacks.size(); ++event) {
    const plan::Span& span = prediction.timeline.spans[event];  // one per event
    text += fmt::format("{},{},{},{},{},{}\n", span.rank, span.action, span.start.value,
                        span.end.value, slacks[event], critical[event] == 0 ? 0 : 1);
  }
  return text;
}

plan::Json prediction_json(const Prediction& prediction, const sim::ScenarioPlan& plan,
                           const plan::LayerCosts& costs, const sim::Throughput& throughput,
                           const std::vector<models::DeviceMemory>& memory) {
  plan::Json json = to_json(figures_of(prediction.timeline));
  if (costs.drift > 0) {
    json["drift"] = costs.drift;
    json["iteration_between_s"] = {prediction.times.iteration * (1 - costs.drift),
                                   prediction.times.iteration * (1 + costs.drift)};
  }
  json["bubble"] = sim::mean_bubble(prediction.idle, prediction.times.iteration);
  json[throughput.unit + "_per_s"] = throughput.units_per_s;
  if (throughput.mfu > 0)
    json["mfu"] = throughput.mfu;
  json["idle_s"] = plan::Json::array();
  for (const auto& causes : prediction.idle.by_cause) {
    plan::Json rank;
    for (std::size_t cause = 0; cause < causes.size(); ++cause)
      rank[plan::idle_causes()[cause]] = causes[cause];
    json["idle_s"].push_back(std::move(rank));
  }
  json["critical_path_s"] = plan::Json::object();
  for (const auto& [what, seconds] :
       critical_shares(*plan.structure, prediction.times, prediction.critical))
    json["critical_path_s"][what] = seconds;
  json["peak_bytes"] = plan::Json::array();
  for (const models::DeviceMemory& rank : memory)
    json["peak_bytes"].push_back(rank.total().value);
  json["peaks"] = plan::Json::array();
  for (std::size_t rank = 0; rank < prediction.peaks.size(); ++rank) {
    plan::Json holders = plan::Json::array();
    for (const sim::Holder& holder : prediction.at_peaks[rank])
      holders.push_back({{"name", holder.name}, {"bytes", holder.bytes.value}});
    plan::Json peak = to_json(memory[rank]);
    peak["time_s"] = prediction.peaks[rank].time;
    peak["held_by"] = std::move(holders);
    json["peaks"].push_back(std::move(peak));
  }
  return json;
}

}  // namespace pipewright::loop
