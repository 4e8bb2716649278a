#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "exit_code.hpp"
#include "options/partition_options.hpp"
#include "pipewright/loop/record/model_file.hpp"
#include "pipewright/plan/costs/layer_split.hpp"
#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/partitioners/layer_weights.hpp"
#include "pipewright/plan/partitioners/layout.hpp"
#include "pipewright/search/partitioners/replicated_partition.hpp"
#include "pipewright/sim/scenario/fastest_partition.hpp"
#include "print/console.hpp"
#include "print/plan_table.hpp"

namespace pipewright::cli {
namespace {

std::vector<int> borders_of(const std::vector<int>& lengths) {
  std::vector<int> boundaries{0};
  for (const int length : lengths)
    boundaries.push_back(boundaries.back() + length);
  return boundaries;
}

void print_json(const plan::Json& answer) { fmt::print("{}\n", answer.dump(2)); }

search::ReplicationOptions replication(const PartitionOptions& options) {
  if (options.machines.empty() || options.machines.size() != options.bandwidth.size())
    throw plan::InputError(
        fmt::format("--profile needs equally many --machines and --bandwidth, one per level: {} "
                    "and {} are given",
                    options.machines.size(), options.bandwidth.size()));
  search::ReplicationOptions replication{
      .levels = {}, .straight = options.straight, .count_transfers = options.count_transfers};
  for (std::size_t level = 0; level < options.machines.size(); ++level)
    replication.levels.push_back({options.machines[level], options.bandwidth[level]});
  return replication;
}

plan::Cluster cluster_for(const PartitionOptions& options) {
  if (!options.cluster.empty())
    return plan::cluster_from_json(plan::JsonDocument::read(options.cluster));
  plan::Cluster cluster;  // one node, transfers take almost no time
  cluster.devices_per_node = options.parts;
  return cluster;
}

}  // namespace

int print_layout(const PartitionOptions& options) {
  const plan::Layout layout = plan::parse_layout(options.layout);
  const auto boundaries = options.model.empty()
                              ? plan::layout_boundaries(layout)
                              : plan::layout_boundaries(layout, loop::read_model(options.model));
  if (options.json) {
    print_json({{"boundaries", boundaries},
                {"stages", layout.stages},
                {"layout", plan::to_string(layout)}});
    return Done;
  }
  fmt::print("{}\n{}\n", plan::to_string(layout), plan::to_string(boundaries));
  for (std::size_t stage = 0; stage < layout.stages.size(); ++stage)
    fmt::print("stage {}: {}\n", stage, layout.stages[stage]);
  return Done;
}

int print_layer_split(const PartitionOptions& options) {
  const auto split =
      plan::layer_split(options.parts, options.layers, options.input_weight, options.output_weight);
  auto sums = split;  // the weight of each stage
  sums.front() += options.input_weight;
  sums.back() += options.output_weight;
  if (options.json) {
    print_json({{"boundaries", borders_of(split)}, {"sums", sums}, {"layers_per_stage", split}});
    return Done;
  }
  fmt::print("{}\nlayers of each stage: {}\n", plan::to_string(borders_of(split)),
             fmt::join(split, ", "));
  return Done;
}

int print_replicated(const PartitionOptions& options) {
  const auto graph = search::without_ends(search::read_profile_graph(options.profile));
  const auto found = search::replicated_partition(graph, replication(options));
  std::vector<int> lengths;
  plan::Json stages = plan::Json::array(), sums = plan::Json::array();
  for (const search::ReplicatedStage& stage : found.stages) {
    lengths.push_back(static_cast<int>(stage.nodes.size()));
    sums.push_back(stage.time.value);
    stages.push_back({{"nodes", stage.nodes}, {"replicas", stage.replicas}});
  }
  if (options.json) {
    print_json({{"boundaries", borders_of(lengths)},
                {"sums", sums},
                {"stages", stages},
                {"slowest_stage_s", found.slowest_stage.value},
                {"one_machine_s", found.one_machine.value}});
    return Done;
  }
  fmt::print("slowest stage {:.6f} s per minibatch, {:.2f} times as fast as one machine\n",
             found.slowest_stage.value, found.one_machine / found.slowest_stage);
  for (std::size_t stage = 0; stage < found.stages.size(); ++stage)
    fmt::print("stage {}: {} nodes on {} machines, {:.6f} s: {} .. {}\n", stage, lengths[stage],
               found.stages[stage].replicas, found.stages[stage].time.value,
               found.stages[stage].nodes.front(), found.stages[stage].nodes.back());
  return Done;
}

int print_fastest(const PartitionOptions& options) {
  if (options.costs.empty() || options.microbatches < 1)
    throw plan::InputError(
        "--objective makespan needs --costs FILE (pipewright profile makes them) and "
        "--microbatches M");
  const auto costs = plan::layer_costs_from_json(plan::JsonDocument::read(options.costs));
  const auto program =
      plan::lower(plan::make_schedule(options.schedule, options.parts, options.microbatches));
  const auto cap =
      options.memory_cap ? std::optional(plan::Bytes{*options.memory_cap}) : std::nullopt;
  const auto found = sim::fastest_partition(program, costs, cluster_for(options), cap);
  const auto sums = sums_of(plan::profile_weights(costs), found.partition.boundaries);
  if (options.json) {
    print_json({{"boundaries", found.partition.boundaries},
                {"sums", sums},
                {"iteration_time_s", found.iteration.value},
                {"balanced_iteration_time_s", found.balanced.value},
                {"exact", found.exact},
                {"simulated", found.simulated}});
    return Done;
  }
  fmt::print("{}\niteration {:.6g} s, balanced stages {:.6g} s; {} partitions simulated{}\n",
             plan::to_string(found.partition.boundaries), found.iteration.value,
             found.balanced.value, found.simulated, found.exact ? " (all possible ones)" : "");
  return Done;
}

}  // namespace pipewright::cli
