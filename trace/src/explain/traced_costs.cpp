#include "pipewright/trace/explain/traced_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "pipewright/plan/scenario/measured_scenario.hpp"
#include "pipewright/plan/timeline/timeline_transfers.hpp"
#include "pipewright/sim/causes/measured_times.hpp"

namespace pipewright::trace {
namespace {

constexpr int parts_without_operators = 4;  // per stage

struct Mean {
  double sum = 0;
  int count = 0;
  void add(double value) {
    sum += value;
    ++count;
  }
  double value() const { return count == 0 ? 0 : sum / count; }
};

std::vector<TracedStage> traced_stages(const TracedPipeline& pipeline) {
  const auto count = static_cast<std::size_t>(plan::stage_count(pipeline.schedule));
  std::vector<TracedStage> stages(count);
  std::vector<std::map<plan::ActionKind, Mean>> means(count);
  for (const plan::Span& span : pipeline.timeline.spans)
    if (const auto action = plan::parse_action(span.action)) {
      const auto stage = static_cast<std::size_t>(action->stage);
      const double time = (span.end - span.start).value;
      means[stage][action->kind].add(time);
      stages[stage].rank = span.rank;
      stages[stage].total += time;
    }
  for (std::size_t at = 0; at < count; ++at) {
    TracedStage& stage = stages[at];
    using Kind = plan::ActionKind;
    stage.forward = means[at][Kind::Forward].value();
    const Mean whole = means[at][Kind::Backward], input = means[at][Kind::InputGradient],
               weight = means[at][Kind::WeightGradient];
    stage.is_split = input.count > 0 && weight.count > 0;
    stage.input_gradient = stage.is_split ? input.value() : whole.value() / 2;
    stage.weight_gradient = stage.is_split ? weight.value() : whole.value() / 2;
    stage.backward = whole.count > 0 ? whole.value() : stage.input_gradient + stage.weight_gradient;
  }
  return stages;
}

double middle(std::vector<double> values) {
  if (values.empty())
    return 0;
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

/// Returns the median time from the begin of a send until its receiver continued. A receiver that
/// was still computing gives only an upper bound; the smallest bound is used if there is nothing
/// else.
double transfer_time(const TracedPipeline& pipeline) {
  const plan::Timeline& timeline = pipeline.timeline;
  std::vector<std::vector<double>> ends(static_cast<std::size_t>(timeline.ranks));  // of compute
  for (const plan::Span& span : timeline.spans)
    if (span.row == plan::Row::Compute && span.end > span.start)
      ends[static_cast<std::size_t>(span.rank)].push_back(span.end.value);
  for (auto& rank : ends)
    std::sort(rank.begin(), rank.end());
  std::vector<double> exact, bounds;
  for (const auto& [sent, received] : plan::transfers_of(timeline)) {
    const plan::Span& send = timeline.spans[sent];
    const plan::Span& receive = timeline.spans[received];
    const auto& rank = ends[static_cast<std::size_t>(receive.rank)];
    const auto behind = std::upper_bound(rank.begin(), rank.end(), receive.end.value);
    const double ready = behind == rank.begin() ? 0 : *std::prev(behind);
    const double time = std::max(0.0, (receive.end - send.start).value);
    (ready <= send.start.value ? exact : bounds).push_back(time);
  }
  if (!exact.empty())
    return middle(exact);
  return bounds.empty() ? 0 : *std::min_element(bounds.begin(), bounds.end());
}

/// A part of a stage, as fractions of its forward and its backward.
struct Piece {
  double forward = 0;
  double backward = 0;
  std::size_t first = 0;  // index of its first operator or equal part within the stage
};

std::vector<Piece> pieces_of(const std::vector<TracedOperator>& operators) {
  double forward = 0, backward = 0;
  for (const TracedOperator& own : operators) {
    forward += own.forward;
    backward += own.backward;
  }
  if (!(forward > 0) || !(backward > 0))
    return {};
  std::vector<Piece> pieces;
  const double most = (forward + backward) / pieces_of_stage;
  double held = most;  // time in the last piece
  for (std::size_t at = 0; at < operators.size(); ++at) {
    const TracedOperator& own = operators[at];
    const double time = own.forward + own.backward;
    if (held + time / 2 > most && pieces.size() < pieces_of_stage) {
      pieces.push_back({.first = at});
      held = 0;
    }
    held += time;
    pieces.back().forward += own.forward / forward;
    pieces.back().backward += own.backward / backward;
  }
  return pieces;
}

class ScenarioMaker {
 public:
  ScenarioMaker(const TracedPipeline& pipeline, const RecognizedSchedule& schedule,
                TracedCosts& traced)
      : pipeline_(pipeline), schedule_(schedule), traced_(traced) {}

  void make() {
    find_pieces();
    make_costs();
    make_scenario();
    say_what_is_supposed();
  }

 private:
  void find_pieces() {
    traced_.layers_known = true;
    for (const auto& operators : pipeline_.operators) {
      pieces_.push_back(pieces_of(operators));
      traced_.layers_known = traced_.layers_known && !pieces_.back().empty();
    }
    if (traced_.layers_known)
      return;
    for (auto& pieces : pieces_) {
      pieces.clear();
      for (std::size_t part = 0; part < parts_without_operators; ++part)
        pieces.push_back({1.0 / parts_without_operators, 1.0 / parts_without_operators, part});
    }
  }

  void make_scenario() {
    plan::Scenario& scenario = traced_.scenario;
    scenario = plan::measured_scenario(traced_.costs, "traced", pipeline_.timeline.ranks);
    scenario.cluster.within_node.latency = plan::Seconds{traced_.transfer_s};
    scenario.cluster.within_node.collective_bandwidth_per_s = 1e12;  // all-reduces were not traced
    scenario.pipeline.microbatches = pipeline_.schedule.microbatches;
    if (!schedule_.nearest.empty())
      scenario.pipeline.schedule = schedule_.nearest;
    scenario.pipeline.chunks = schedule_.chunks;
    std::vector<int> boundaries{0};
    for (const auto& pieces : pieces_)
      boundaries.push_back(boundaries.back() + static_cast<int>(pieces.size()));
    scenario.pipeline.partition = boundaries;
  }

  void make_costs() {
    plan::LayerCosts& costs = traced_.costs;
    costs.device = "traced";
    costs.dtype = "float32";
    costs.software = "from traces";
    costs.loss.name = "loss";
    std::vector<int> layers_of_rank(static_cast<std::size_t>(pipeline_.timeline.ranks));
    for (std::size_t stage = 0; stage < pieces_.size(); ++stage)
      layers_of_rank[static_cast<std::size_t>(traced_.stages[stage].rank)] +=
          static_cast<int>(pieces_[stage].size());
    for (std::size_t at = 0; at < pieces_.size(); ++at) {
      const TracedStage& stage = traced_.stages[at];
      const auto rank = static_cast<std::size_t>(stage.rank);
      const double split =
          std::max(0.0, stage.input_gradient + stage.weight_gradient - stage.backward);
      for (const Piece& piece : pieces_[at]) {
        plan::LayerCost cost;
        traced_.layers.push_back(traced_layer(static_cast<int>(at), piece));
        cost.name = to_string(traced_.layers.back());
        cost.forward = plan::Seconds{stage.forward * piece.forward};
        cost.input_gradient = plan::Seconds{stage.input_gradient * piece.backward};
        cost.weight_gradient = plan::Seconds{stage.weight_gradient * piece.backward};
        cost.splitting = plan::Seconds{split * piece.backward};
        cost.optimizer_step = plan::Seconds{pipeline_.optimizer_s[rank] / layers_of_rank[rank]};
        costs.layers.push_back(cost);
      }
    }
  }

  TracedLayer traced_layer(int stage, const Piece& piece) const {
    TracedLayer layer{stage, static_cast<int>(piece.first), parts_without_operators, {}};
    if (traced_.layers_known) {
      const auto& operators = pipeline_.operators[static_cast<std::size_t>(stage)];
      layer.parts = static_cast<int>(operators.size());
      layer.operator_name = operators[piece.first].name;
    }
    return layer;
  }

  void say_what_is_supposed() {
    auto& told = traced_.assumptions;
    if (schedule_.name.empty())
      told.push_back(
          schedule_.nearest.empty()
              ? fmt::format("no schedule of the catalog has these sizes: the scenario uses {}",
                            traced_.scenario.pipeline.schedule.name)
              : fmt::format(
                    "the schedule is not in the catalog: the scenario uses the nearest one, {}",
                    schedule_.nearest));
    if (std::none_of(traced_.stages.begin(), traced_.stages.end(),
                     [](const TracedStage& stage) { return stage.is_split; }))
      told.emplace_back(
          "no backward ran in two halves: input gradient and weight gradient are assumed to take "
          "half of "
          "it each");
    told.push_back(
        traced_.layers_known
            ? "stages may begin at any forward operator: whether the "
              "model can be split there is unknown"
            : "operators cannot be told apart: a stage is treated as equal parts, so another "
              "partition gives a bound, not a plan");
    told.emplace_back(
        "a transfer takes the same time wherever the model is split; its bytes, and the memory of "
        "ranks, are unknown");
    told.emplace_back(
        "a microbatch of half the size takes half the time: small ones take longer than that");
  }

  const TracedPipeline& pipeline_;
  const RecognizedSchedule& schedule_;
  TracedCosts& traced_;
  std::vector<std::vector<Piece>> pieces_;  // by stage
};

}  // namespace

std::string to_string(const TracedLayer& layer) {
  if (layer.operator_name.empty())
    return fmt::format("stage {}, part {} of {}", layer.stage, layer.part + 1, layer.parts);
  return fmt::format("stage {}, operator {} of {} ({})", layer.stage, layer.part + 1, layer.parts,
                     layer.operator_name);
}

TracedCosts traced_costs(const TracedPipeline& pipeline, const RecognizedSchedule& schedule) {
  TracedCosts traced;
  traced.stages = traced_stages(pipeline);
  traced.transfer_s = transfer_time(pipeline);
  ScenarioMaker(pipeline, schedule, traced).make();
  return traced;
}

}  // namespace pipewright::trace
