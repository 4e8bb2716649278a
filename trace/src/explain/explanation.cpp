#include "pipewright/trace/explain/explanation.hpp"

#include <cmath>
#include <numeric>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/timeline_transfers.hpp"

namespace pipewright::trace {
namespace {

std::vector<TracedRankTimes> rank_times(const plan::Timeline& timeline) {
  std::vector<TracedRankTimes> ranks(static_cast<std::size_t>(timeline.ranks));
  const auto busy = plan::busy_per_rank(timeline);
  const auto idle = plan::idle_by_cause(timeline);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    ranks[rank].busy_s = busy[rank].value;
    ranks[rank].idle = idle[rank];
  }
  for (const plan::TransferSplit& split : plan::split_transfers(timeline)) {
    ranks[static_cast<std::size_t>(split.rank)].waiting_s += split.waiting.value;
    ranks[static_cast<std::size_t>(split.rank)].moving_s += split.moving.value;
  }
  return ranks;
}

plan::Json json_of(const TracedRankTimes& rank, const std::string& file) {
  plan::Json idle = plan::Json::object();
  for (std::size_t cause = 0; cause < plan::idle_cause_count; ++cause)
    idle[plan::idle_causes()[cause]] = rank.idle[cause].value;
  return {{"file", file},
          {"busy_s", rank.busy_s},
          {"idle_s", idle},
          {"waiting_s", rank.waiting_s},
          {"moving_s", rank.moving_s}};
}

plan::Json json_of(const TracedStage& stage) {
  plan::Json json{{"rank", stage.rank},
                  {"forward_s", stage.forward},
                  {"backward_s", stage.backward},
                  {"total_s", stage.total}};
  if (stage.is_split) {
    json["input_gradient_s"] = stage.input_gradient;
    json["weight_gradient_s"] = stage.weight_gradient;
  }
  return json;
}

}  // namespace

TraceExplanation explanation_of(TracedPipeline pipeline, const std::function<void()>& ask) {
  TraceExplanation explanation;
  explanation.pipeline = std::move(pipeline);
  explanation.schedule = recognized_schedule(explanation.pipeline.schedule);
  explanation.costs = traced_costs(explanation.pipeline, explanation.schedule);
  explanation.alternatives = alternatives(explanation.pipeline, explanation.costs, ask);
  explanation.ranks = rank_times(explanation.pipeline.timeline);
  double sum = 0;
  const auto& stages = explanation.costs.stages;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    sum += stages[stage].total;
    if (stages[stage].total > stages[static_cast<std::size_t>(explanation.slowest_stage)].total)
      explanation.slowest_stage = static_cast<int>(stage);
  }
  const double slowest = stages[static_cast<std::size_t>(explanation.slowest_stage)].total;
  if (sum > 0)
    explanation.slowest_over_mean = slowest * static_cast<double>(stages.size()) / sum;
  return explanation;
}

plan::Json to_json(const TraceExplanation& explanation) {
  const TracedPipeline& pipeline = explanation.pipeline;
  plan::Json json{
      {"schedule", explanation.schedule.name.empty() ? "unknown" : explanation.schedule.name},
      {"microbatches", pipeline.schedule.microbatches},
      {"iteration_s", pipeline.timeline.length.value},
      {"slowest_stage", explanation.slowest_stage},
      {"slowest_over_mean", explanation.slowest_over_mean},
      {"found_by", to_string(pipeline.source)},
      {"on_device", pipeline.on_device},
      {"steps", pipeline.steps},
      {"step", pipeline.step_index},
      {"transfer_s", explanation.costs.transfer_s},
      {"clock_s", pipeline.clock_s},
      {"assumptions", explanation.costs.assumptions}};
  json["clock_uncertainty_s"] = std::isfinite(pipeline.clock_uncertainty_s)
                                    ? plan::Json(pipeline.clock_uncertainty_s)
                                    : plan::Json();
  if (explanation.schedule.name.empty())
    json["nearest"] = {{"schedule", explanation.schedule.nearest},
                       {"identical_layers", explanation.schedule.alike},
                       {"difference", explanation.schedule.difference}};
  for (std::size_t rank = 0; rank < explanation.ranks.size(); ++rank)
    json["ranks"].push_back(json_of(explanation.ranks[rank], pipeline.files[rank]));
  for (const TracedStage& stage : explanation.costs.stages)
    json["stages"].push_back(json_of(stage));
  json["simulated_s"] = explanation.alternatives.now_s;
  json["activations"] = explanation.alternatives.activations;
  json["alternatives"] = plan::Json::array();
  for (const Alternative& own : explanation.alternatives.all) {
    plan::Json change{
        {"change", own.change}, {"iteration_s", own.iteration_s}, {"activations", own.activations}};
    for (const TracedLayer& layer : own.cut)
      change["cut"].push_back(to_string(layer));
    json["alternatives"].push_back(std::move(change));
  }
  return json;
}

}  // namespace pipewright::trace
