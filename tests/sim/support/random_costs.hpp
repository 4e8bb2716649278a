#pragma once

// Random costs of every kind that the simulator supports, for properties over grids.

#include <random>
#include <vector>

#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/sim/structure/step_costs.hpp"

namespace pipewright::test {

inline std::vector<plan::LoweringOptions> all_ways_to_communicate() {
  std::vector<plan::LoweringOptions> all;
  for (const auto layout : {plan::CommunicatorLayout::Edge, plan::CommunicatorLayout::Pair,
                            plan::CommunicatorLayout::Rank})
    for (const auto mode : {plan::TransferMode::Eager, plan::TransferMode::Rendezvous})
      for (const bool blocking : {false, true})
        for (const auto& [replicas, zero] : {std::pair{1, 0}, {2, 0}, {2, 2}, {2, 3}}) {
          plan::LoweringOptions options;
          options.communicators = layout;
          options.transfers = mode;
          options.blocking = blocking;
          options.replicas = replicas;
          options.zero = zero;
          options.whole_stages = 1;
          all.push_back(options);
        }
  return all;
}

/// Returns random costs on two nodes, with stages and links of all kinds. Odd rounds have
/// microbatches of unequal length; every third has ranks of unequal speed; every fourth has jitter;
/// every fifth has transfers that occupy ranks.
inline sim::StepCosts random_costs(const plan::Program& program, std::mt19937& random, int round) {
  const auto between = [&](double least, double most) {
    return std::uniform_real_distribution(least, most)(random);
  };
  const auto bytes = [&] { return plan::Bytes{std::uniform_int_distribution(0, 50)(random)}; };
  sim::StepCosts costs;
  for (int stage = 0; stage < plan::stage_count(program); ++stage) {
    plan::StageCost cost;
    cost.forward = {between(0.5, 2)};
    cost.input_gradient = {between(0.5, 2)};
    cost.weight_gradient = {between(0, 2)};
    cost.optimizer_step = {between(0, 1)};
    cost.load = {stage == 0 ? between(0, 0.2) : 0};
    cost.output = bytes();
    cost.input_gradient_bytes = bytes();
    cost.gradients = bytes();
    costs.stages.push_back(cost);
  }
  const auto ranks = static_cast<int>(program.ranks.size());
  costs.cluster.nodes = 2;
  costs.cluster.devices_per_node = (ranks + 1) / 2;
  costs.cluster.within_node = {.latency = {between(0, 0.3)}, .bandwidth_per_s = 100};
  costs.cluster.between_nodes = {.latency = {between(0, 0.5)}, .bandwidth_per_s = 30};
  if (round % 2 == 1)
    for (int m = 0; m < program.microbatches; ++m)
      costs.microbatch_lengths.push_back(between(0.2, 3));
  if (round % 3 == 2)
    for (int rank = 0; rank < ranks; ++rank)
      costs.cluster.rank_speeds.push_back(between(0.5, 1.5));
  if (round % 4 == 3)
    costs.jitter = 0.2;
  if (round % 5 == 4) {
    costs.cluster.within_node.overheads.send = {{between(0, 0.3)}, 200};
    costs.cluster.between_nodes.overheads.send = {{between(0, 0.3)}, 0};
    costs.cluster.between_nodes.overheads.receive = {{between(0, 0.3)}, 100};
    costs.cluster.between_nodes.overheads.sum = {{between(0, 0.3)}, 100};
  }
  costs.seed = static_cast<std::uint64_t>(round);
  return costs;
}

/// Adds contended stage times: up to three times as long.
inline void make_contended(sim::StepCosts& costs, std::mt19937& random, int cores) {
  costs.contended = costs.stages;
  std::uniform_real_distribution slower(1.0, 3.0);
  for (plan::StageCost& stage : costs.contended) {
    stage.forward = stage.forward * slower(random);
    stage.weight_gradient = stage.weight_gradient * slower(random);
  }
  costs.busy_cores = cores;
}

}  // namespace pipewright::test
