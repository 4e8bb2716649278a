#include "pipewright/trace/straggler/sampled_steps.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "pipewright/sim/jitter/drawn_steps.hpp"
#include "pipewright/trace/straggler/launch_delays.hpp"

namespace pipewright::trace {
namespace {

constexpr std::size_t draws_at_once = 64;
constexpr std::size_t least_steps = 4;  // half of them are held out

/// Returns nothing if a Program has no such instruction.
std::optional<plan::InstructionKind> instruction_kind_of(JobOperation operation) {
  using Kind = plan::InstructionKind;
  switch (operation) {
    case JobOperation::Forward:
      return Kind::Forward;
    case JobOperation::Backward:
      return Kind::Backward;
    case JobOperation::WeightGradient:
      return Kind::WeightGradient;
    case JobOperation::ForwardSend:
      return Kind::SendActivation;
    case JobOperation::BackwardSend:
      return Kind::SendGradient;
    case JobOperation::Gather:
      return Kind::GatherParameters;
    case JobOperation::Scatter:
      return Kind::ScatterGradients;
    case JobOperation::EmbeddingSum:
      return Kind::ReduceTied;
    case JobOperation::Clip:
      return Kind::NormGradients;
    case JobOperation::Optimizer:
      return Kind::OptimizerStep;
    case JobOperation::ForwardReceive:
    case JobOperation::BackwardReceive:
    case JobOperation::NormSum:
    case JobOperation::SeparateSum:
    case JobOperation::GarbageCollection:
      return {};
  }
  return {};
}

JobTimes chosen(const JobTimes& times, const std::vector<std::size_t>& places) {
  JobTimes some(times.nodes(), places.size());
  for (NodeNumber node = 0; node < times.nodes(); ++node)
    for (std::size_t at = 0; at < places.size(); ++at)
      some.of(node)[at] = times.of(node)[places[at]];
  return some;
}

template <class Value>
std::vector<Value> chosen(const std::vector<Value>& values,
                          const std::vector<std::size_t>& places) {
  std::vector<Value> some;
  for (const std::size_t place : places)
    some.push_back(values[place]);
  return some;
}

/// Returns every second index from `first` on.
std::vector<std::size_t> every_second(std::size_t steps, std::size_t first) {
  std::vector<std::size_t> places;
  for (std::size_t at = first; at < steps; at += 2)
    places.push_back(at);
  return places;
}

/// The recorded step that each worker takes in a batch of samples, in the layout of a replay.
class DrawnTimes {
 public:
  DrawnTimes(const JobSteps& steps, int block)
      : steps_(steps),
        late_begins_(late_begins(steps)),
        drawn_{.pipelines = steps.plan.layout.replicas,
               .ranks = steps.plan.layout.stages,
               .recorded = static_cast<int>(steps.recorded.steps()),
               .together = sim::together_in(record_of(steps)),
               .block = block},
        chosen_(draws_at_once * static_cast<std::size_t>(steps.plan.layout.workers())),
        times_(steps.graph.nodes.size(), draws_at_once),
        late_(steps.graph.nodes.size(), draws_at_once) {}

  /// Returns the step times of the samples from number `first` on.
  std::vector<double> replayed(std::uint64_t seed, std::uint64_t first) {
    for (std::size_t draw = 0; draw < draws_at_once; ++draw)
      drawn_.draw(seed, first + draw, chosen_.data() + draw, draws_at_once);
    const JobGraph& graph = late_begins_.graph;
    for (NodeNumber node = 0; node < times_.nodes(); ++node)
      take(steps_.recorded.of(node), node, times_.of(node));
    for (std::size_t at = 0; at < graph.groups(); ++at)
      for (const NodeNumber node : graph.group(at))
        take(late_begins_.delays.of(node), graph.group(at).front(), late_.of(node));
    return replayed_steps(graph, times_, &late_);
  }

 private:
  /// Takes the values of the recorded steps that were sampled for the node's worker. A group has
  /// one common delay: with a delay for each member, the longest of them would count.
  void take(std::span<const double> recorded, NodeNumber node, std::span<double> into) const {
    const JobLayout& layout = steps_.plan.layout;
    const int worker = steps_.graph.nodes[node].worker;
    const int place = layout.replica_of(worker) * layout.stages + layout.stage_of(worker);
    const int* const chosen = chosen_.data() + static_cast<std::size_t>(place) * draws_at_once;
    for (std::size_t draw = 0; draw < draws_at_once; ++draw)
      into[draw] = recorded[static_cast<std::size_t>(chosen[draw])];
  }

  const JobSteps& steps_;
  const LateBegins late_begins_;
  const sim::DrawnSteps drawn_;
  std::vector<int> chosen_;  // by worker and sample
  JobTimes times_, late_;
};

std::vector<double> drawn_steps(const JobSteps& steps, const sim::SamplingOptions& options,
                                int block) {
  require_usable(options);
  DrawnTimes drawn(steps, block);
  std::vector<double> iterations;
  const auto count = static_cast<std::size_t>(options.count);
  while (iterations.size() < count) {
    const auto found = drawn.replayed(options.seed, iterations.size());
    iterations.insert(iterations.end(), found.begin(), found.end());
  }
  iterations.resize(count);
  return iterations;
}

}  // namespace

models::RecordedSteps record_of(const JobSteps& steps) {
  const JobLayout& layout = steps.plan.layout;
  std::map<std::tuple<int, int, plan::InstructionKey>, models::RecordedOperation> operations;
  for (NodeNumber at = 0; at < steps.graph.nodes.size(); ++at) {
    const JobNode& node = steps.graph.nodes[at];
    const auto kind = instruction_kind_of(node.operation);
    if (!kind)
      continue;
    const int rank = layout.stage_of(node.worker);
    models::RecordedOperation own{
        .replica = layout.replica_of(node.worker),
        .rank = rank,
        .instruction = {.kind = *kind,
                        .stage = std::max(0, node.chunk) * layout.stages + rank,
                        .microbatch = node.microbatch}};
    auto& operation = operations[{own.replica, own.rank, plan::key_of(own.instruction)}];
    for (const double seconds : steps.recorded.of(at))
      own.seconds.push_back(std::max(0.0, seconds));
    if (operation.seconds.empty())
      operation = std::move(own);
    else  // several gathers of a worker
      std::transform(own.seconds.begin(), own.seconds.end(), operation.seconds.begin(),
                     operation.seconds.begin(), std::plus<>());
  }
  models::RecordedSteps record{.numbers = steps.numbers};
  for (auto& [place, operation] : operations)
    record.operations.push_back(std::move(operation));
  return record;
}

JobSteps chosen_steps(const JobSteps& steps, const std::vector<std::size_t>& places) {
  JobSteps some;
  some.plan = steps.plan;
  some.graph = steps.graph;
  some.numbers = chosen(steps.numbers, places);
  some.recorded = chosen(steps.recorded, places);
  some.begins = chosen(steps.begins, places);
  some.measured = chosen(steps.measured, places);
  some.zero = chosen(steps.zero, places);
  return some;
}

sim::Draws sample_job(const JobSteps& steps, const sim::SamplingOptions& options) {
  return sim::Draws(drawn_steps(steps, options, /*block=*/0));
}

sim::SampledRanges job_ranges(const JobSteps& steps, const sim::SamplingOptions& options) {
  const auto count = static_cast<int>(steps.numbers.size());
  const sim::SamplingOptions all{.count = sim::records_of(count, options.count) * count,
                                 .seed = options.seed};
  return sim::ranges_of(drawn_steps(steps, all, sim::block_of(count)), count);
}

SampledSteps sample_steps(const JobSteps& steps, const sim::SamplingOptions& options) {
  const sim::Draws all = sample_job(steps, options);
  SampledSteps days;
  days.draws = all.sorted().size();
  days.together = sim::together_in(record_of(steps));
  days.mean_s = all.mean();
  days.p50_s = all.percentile(0.50);
  days.p95_s = all.percentile(0.95);
  days.p99_s = all.percentile(0.99);
  const std::size_t count = steps.numbers.size();
  if (count > 1)
    days.ranges = job_ranges(steps, options);
  if (count < least_steps)
    return days;
  const JobSteps half = chosen_steps(steps, every_second(count, 0));
  const sim::Draws learnt = sample_job(half, options);
  const sim::SampledRanges ranges = job_ranges(half, options);
  const sim::Draws measured(chosen(steps.measured, every_second(count, 1)));
  days.kept_steps = measured.sorted().size();
  days.kept_mean = {learnt.mean(), measured.mean(), ranges.mean};
  days.kept_p50 = {learnt.percentile(0.50), measured.percentile(0.50), ranges.p50};
  days.kept_p95 = {learnt.percentile(0.95), measured.percentile(0.95), ranges.p95};
  return days;
}

namespace {

plan::Json json_of_day(const SampledFigure& day) {
  return {{"drawn_s", day.sampled_s},
          {"measured_s", day.measured_s},
          {"drawn_range_s", sim::to_json(day.range)},
          {"error_percent", 100 * day.error()}};
}

}  // namespace

plan::Json to_json(const SampledSteps& days) {
  plan::Json json{{"count", days.draws},
                  {"ranks_together", days.together.ranks},
                  {"pipelines_together", days.together.pipelines},
                  {"mean_s", days.mean_s},
                  {"p50_s", days.p50_s},
                  {"p95_s", days.p95_s},
                  {"p99_s", days.p99_s},
                  {"other_steps", nullptr},
                  {"kept", nullptr}};
  if (days.ranges.steps > 0)
    json["other_steps"] = sim::to_json(days.ranges);
  if (days.kept_steps > 0)
    json["kept"] = {{"steps", days.kept_steps},
                    {"mean", json_of_day(days.kept_mean)},
                    {"p50", json_of_day(days.kept_p50)},
                    {"p95", json_of_day(days.kept_p95)}};
  return json;
}

}  // namespace pipewright::trace
