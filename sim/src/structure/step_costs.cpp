#include "pipewright/sim/structure/step_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "pipewright/plan/cluster/runtime_messages.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/scenario/scenario_cut.hpp"

namespace pipewright::sim {
namespace {

class Check {
 public:
  void time(const std::string& what, plan::Seconds seconds) {
    if (!(seconds.value >= 0) || !std::isfinite(seconds.value))
      refuse(fmt::format("{} is {} s: a time must be 0 or more, and finite", what, seconds.value));
  }
  void factor(const std::string& what, double value) {
    if (!(value > 0) || !std::isfinite(value))
      refuse(fmt::format("{} is {}: it must be more than 0, and finite", what, value));
  }
  void link(const std::string& what, const plan::Link& link) {
    time("the latency " + what, link.latency);
    if (!(link.bandwidth_per_s > 0))  // infinite is allowed: then only the latency counts
      refuse(fmt::format("the bandwidth {} is {} bytes/s: it must be more than 0", what,
                         link.bandwidth_per_s));
    factor("the oversubscription " + what, link.oversubscription);
    segments("a transfer " + what, link.segments);
    segments("a step of an all-reduce " + what, link.collective_segments);
    segments("a step of a tensor-parallel all-reduce " + what, link.tensor_parallel_segments);
    time("the latency of all-reduces " + what, link.collective_latency);
    time("the latency of tensor-parallel all-reduces " + what, link.tensor_parallel_latency);
    if (!(link.tensor_parallel_bandwidth_per_s >= 0))
      refuse(
          fmt::format("the bandwidth of tensor-parallel all-reduces {} is {} bytes/s: it must not "
                      "be less than 0",
                      what, link.tensor_parallel_bandwidth_per_s));
    if (!(link.collective_bandwidth_per_s >= 0))
      refuse(
          fmt::format("the bandwidth of all-reduces {} is {} bytes/s: it must not be less than 0",
                      what, link.collective_bandwidth_per_s));
    overhead("of senders " + what, link.overheads.send);
    overhead("of receivers " + what, link.overheads.receive);
    overhead("of all-reduces " + what, link.overheads.sum);
  }
  void segments(const std::string& what, const std::vector<plan::LinkSegment>& segments) {
    for (const plan::LinkSegment& segment : segments) {
      const std::string from = fmt::format("{} from {} bytes on", what, segment.from.value);
      time(from, segment.time);
      if (!(segment.bandwidth_per_s > 0))
        refuse(fmt::format("the bandwidth of {} is {} bytes/s: it must be more than 0", from,
                           segment.bandwidth_per_s));
    }
  }
  void overhead(const std::string& what, const plan::Overhead& overhead) {
    time("the overhead " + what, overhead.each);
    if (!(overhead.bandwidth_per_s >= 0))
      refuse(
          fmt::format("the bandwidth of the overhead {} is {} bytes/s: it must not be less than 0",
                      what, overhead.bandwidth_per_s));
    segments("the overhead " + what, overhead.segments);
  }
  void count(const char* what, std::size_t given, std::size_t wanted) {
    if (given != wanted)
      refuse(fmt::format("{} are given for {}, but the program has {}", what, given, wanted));
  }
  void stages(const std::vector<plan::StageCost>& costs, const char* which) {
    for (std::size_t s = 0; s < costs.size(); ++s) {
      const plan::StageCost& stage = costs[s];
      const std::string of = fmt::format("{} of stage {}", which, s);
      time("the load" + of, stage.load);
      time("the forward" + of, stage.forward);
      time("the input gradient" + of, stage.input_gradient);
      time("the weight gradient" + of, stage.weight_gradient);
      if (stage.splitting > plan::Seconds{})
        time("the backward" + of, plan::backward_time(stage));
      time("the optimizer step" + of, stage.optimizer_step);
    }
  }
  void refuse(std::string line) { lines_.push_back(std::move(line)); }
  void throw_if_any() const {
    if (!lines_.empty())
      throw plan::InputError(plan::listed_lines(lines_));
  }

 private:
  std::vector<std::string> lines_;
};

/// Adds the iteration's fixed time once per rank: the first stages lie on different ranks.
void add_iteration(StepCosts& step, plan::Seconds iteration, int ranks) {
  for (std::size_t stage = 0; stage < step.stages.size(); ++stage)
    if (stage < static_cast<std::size_t>(ranks))
      step.stages[stage].optimizer_step += iteration;
}

/// Returns the cluster with links for transfers by its machine's constants, which already include
/// the sharing of links. Between nodes transfers wait for those of other pipelines of the node, if
/// stages lie on several nodes. Tensor-parallel ranks with sequence parallelism send their parts
/// concurrently over the bandwidth that the constants give for one transfer.
plan::Cluster with_transfer_links(plan::Cluster cluster, const plan::Pipeline& pipeline) {
  if (!cluster.machine)
    return cluster;
  const plan::MachineConstants& constants = cluster.machine->constants;
  const double at_once = pipeline.sequence_parallel ? pipeline.tensor : 1;
  const double in_node = cluster.devices_per_node;
  const double pipelines = in_node / std::min<double>(pipeline.tensor, in_node);
  const double nodes = 1.0 * plan::ranks_of_job(pipeline) / pipeline.ranks / in_node;
  const double slower = 1 / constants.network_efficiency +
                        (pipelines - 1) * std::max(0.0, nodes - 2) * constants.uplink_contention;
  const auto use = [&](plan::Link& link, double efficiency) {
    link = {.latency = {},
            .bandwidth_per_s = link.bandwidth_per_s * efficiency / at_once,
            .oversubscription = link.oversubscription};
  };
  use(cluster.within_node, constants.transfer_efficiency);
  const std::vector<plan::Link*> links = links_of(cluster);
  for (std::size_t level = 1; level < links.size(); ++level)
    use(*links[level], 1 / slower);
  return cluster;
}

}  // namespace

plan::LayerCosts shard_costs_of(const plan::Scenario& scenario, const plan::LayerCosts& costs) {
  return plan::with_shard_times(plan::costs_of_shards(scenario, costs), scenario.cluster,
                                plan::shard_places(scenario.cluster, scenario.pipeline));
}

void set_partition(StepCosts& step, const plan::Scenario& scenario,
                   const plan::LayerCosts& shard_costs, const plan::Partition& partition) {
  set_stages(step, shard_costs, partition, training_memory(scenario));
  add_iteration(step, shard_costs.iteration, scenario.pipeline.ranks);
  if (shard_costs.runtime)
    add_iteration(step, shard_costs.runtime->iteration, scenario.pipeline.ranks);
}

StepCosts step_costs_of(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                        const plan::Partition& partition) {
  const plan::Pipeline& pipeline = scenario.pipeline;
  const plan::ShardPlaces cut_places = plan::shard_places(scenario.cluster, pipeline);
  StepCosts step;
  set_partition(step, scenario, shard_costs_of(scenario, costs), partition);
  step.cluster = with_transfer_links(scenario.cluster, pipeline);
  if (costs.runtime)
    step.cluster = plan::with_messages(std::move(step.cluster), *costs.runtime);
  if (scenario.cluster.machine)
    step.measured = scenario.cluster;
  plan::StagePlaces places = plan::stage_places(pipeline);
  step.replicas = places.copies;
  step.shards = places.shards;
  step.devices = std::move(places.devices);
  step.expert = pipeline.expert;
  const bool spans = cut_places.tensor.spans || cut_places.expert.spans || cut_places.context.spans;
  step.pair_overlap = (spans ? scenario.cluster.between_nodes : scenario.cluster.within_node)
                          .tensor_parallel_overlap;
  step.microbatch_lengths = scenario.training.microbatch_lengths;
  step.jitter = scenario.training.jitter;
  step.seed = static_cast<std::uint64_t>(scenario.training.seed);
  return step;
}

void set_stages(StepCosts& step, const plan::LayerCosts& costs, const plan::Partition& partition,
                const plan::TrainingMemory& training) {
  const auto stages_of = [&](const plan::LayerCosts& layers) {
    auto stages = plan::stage_costs(layers, partition, training);
    if (layers.runtime)
      plan::add_actions(stages, *layers.runtime);
    return stages;
  };
  step.stages = stages_of(costs);
  step.busy_cores = costs.busy_cores;
  step.workspaces = costs.workspaces;
  step.contended.clear();
  if (costs.busy_cores > 1)
    step.contended = stages_of(plan::contended(costs));
}

void require_usable(const StepCosts& costs, const plan::Program& program) {
  Check check;
  const auto stages = static_cast<std::size_t>(plan::stage_count(program));
  if (costs.stages.size() != stages)
    check.refuse(fmt::format("costs are given for {} stages, but the program has {}",
                             costs.stages.size(), stages));
  check.stages(costs.stages, "");
  if (!costs.contended.empty()) {
    check.count("contended costs of stages", costs.contended.size(), stages);
    check.stages(costs.contended, ", contended,");
    if (costs.busy_cores < 2)
      check.refuse(fmt::format("contended costs are those of {} busy cores: it must be at least 2",
                               costs.busy_cores));
  }
  check.link("within a node", costs.cluster.within_node);
  for (std::size_t level = 1; costs.cluster.nodes > 1 && level < level_count(costs.cluster);
       ++level)
    check.link(level_words(costs.cluster, level), link_of_level(costs.cluster, level));
  if (costs.shards < 1 || costs.expert < 1 || costs.replicas % std::max(1, costs.expert) != 0)
    check.refuse(fmt::format(
        "{} tensor-parallel ranks of {} replicas, and expert parallelism over {} replicas: "
        "each must be at least 1, and the replicas a multiple of the last",
        costs.shards, costs.replicas, costs.expert));
  if (!(costs.pair_overlap >= 0 && costs.pair_overlap <= 1))
    check.refuse(fmt::format("the overlap of fused pairs is {}: it must be between 0 and 1",
                             costs.pair_overlap));
  if (costs.replicas < 1)
    check.refuse(fmt::format("{} replicas of the pipeline: at least 1 is needed", costs.replicas));
  if (!costs.microbatch_lengths.empty())
    check.count("lengths of microbatches", costs.microbatch_lengths.size(),
                static_cast<std::size_t>(program.microbatches));
  for (std::size_t m = 0; m < costs.microbatch_lengths.size(); ++m)
    check.factor(fmt::format("the length of microbatch {}", m), costs.microbatch_lengths[m]);
  if (!costs.cluster.rank_speeds.empty())
    check.count("speeds of ranks", costs.cluster.rank_speeds.size(), program.ranks.size());
  for (std::size_t r = 0; r < costs.cluster.rank_speeds.size(); ++r)
    check.factor(fmt::format("the speed of rank {}", r), costs.cluster.rank_speeds[r]);
  if (!(costs.jitter >= 0) || !std::isfinite(costs.jitter))
    check.refuse(fmt::format("the jitter is {}: it must be 0 or more, and finite", costs.jitter));
  check.throw_if_any();
}

}  // namespace pipewright::sim
