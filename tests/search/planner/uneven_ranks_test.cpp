#include "pipewright/search/planner/uneven_ranks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>

#include "pipewright/models/transformer/transformer_costs.hpp"
#include "pipewright/models/transformer/transformer_counts.hpp"
#include "pipewright/plan/cluster/node_orders.hpp"
#include "pipewright/plan/scenario/scenario_cut.hpp"
#include "pipewright/search/planner/plan_files.hpp"
#include "pipewright/search/planner/plan_price.hpp"
#include "pipewright/search/planner/plan_search.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace uneven_ranks_test {

using namespace pipewright;

/// Visits all ways to distribute `layers` over `stages`, at least one each.
void for_each_cut(int layers, int stages, const std::function<void(const std::vector<int>&)>& visit,
                  std::vector<int> before = {}) {
  if (stages == 1) {
    before.push_back(layers);
    visit(before);
    return;
  }
  for (int own = 1; own <= layers - (stages - 1); ++own) {
    before.push_back(own);
    for_each_cut(layers - own, stages - 1, visit, before);
    before.pop_back();
  }
}

double longest(const std::vector<int>& layers, double head, const models::PipelineShape& shape,
               const std::vector<double>& speeds) {
  double most = 0;
  for (std::size_t rank = 0; rank < speeds.size(); ++rank) {
    double busy = 0;
    for (const int stage : shape.stages_of_rank[rank])
      busy += layers[static_cast<std::size_t>(stage)] +
              (stage + 1 == static_cast<int>(layers.size()) ? head : 0);
    most = std::max(most, busy / speeds[rank]);
  }
  return most;
}

TEST_CASE("Layers are distributed by speed, so that no partition has a shorter busiest rank",
          "[planner]") {
  const auto of = [](int ranks, int chunks) {
    return models::pipeline_shape(chunks == 1 ? "1f1b" : "interleaved-1f1b", ranks, 4 * ranks,
                                  chunks);
  };
  using Layers = std::vector<int>;
  CHECK(search::dealt_layers({30}, of(2, 1), {1, 2}) == Layers{10, 20});
  CHECK(search::dealt_layers({30}, of(2, 1), {2, 1}) == Layers{20, 10});
  CHECK(search::dealt_layers({28, 2}, of(2, 1), {1, 2}) == Layers{10, 18});
  CHECK(search::dealt_layers({12}, of(2, 2), {1, 2}) == Layers{2, 4, 2, 4});
  CHECK(search::dealt_layers({30, 0, {30, 15}}, of(2, 1), {1, 2}) == Layers{15, 15});
  CHECK(!search::dealt_layers({30, 0, {10, 15}}, of(2, 1), {1, 2}));
  std::mt19937 random(3);
  std::uniform_real_distribution speed(0.25, 2.0);
  for (int round = 0; round < 200; ++round) {
    const int chunks = 1 + round % 2, ranks = chunks == 2 ? 2 : 2 + round % 3;
    const int layers = ranks * chunks + static_cast<int>(random() % 8);
    const auto shape = of(ranks, chunks);
    std::vector<double> speeds;
    for (int rank = 0; rank < ranks; ++rank)
      speeds.push_back(speed(random));
    const double head = round % 3;
    double best = std::numeric_limits<double>::infinity();
    for_each_cut(layers, ranks * chunks, [&](const std::vector<int>& cut) {
      best = std::min(best, longest(cut, head, shape, speeds));
    });
    const auto dealt = search::dealt_layers({layers, head}, shape, speeds);
    REQUIRE(longest(*dealt, head, shape, speeds) == Approx(best).epsilon(1e-12));
  }
}

/// Returns nodes of one device; links take almost no time compared with compute.
plan::Cluster quick_links(std::vector<plan::NodeKind> kinds) {
  plan::Cluster cluster;
  cluster.nodes = 0;
  for (const plan::NodeKind& kind : kinds)
    cluster.nodes += kind.nodes;
  cluster.device = {
      .name = "new", .memory = {}, .flops_per_s = 312e12, .memory_bandwidth_per_s = 2e12};
  cluster.within_node = cluster.between_nodes = {.latency = {}, .bandwidth_per_s = 1e18};
  cluster.machine.emplace();
  cluster.mixture = {.kinds = std::move(kinds)};
  return cluster;
}

search::PlanSpace space_of(int layers, int gpus, int batch) {
  search::PlanSpace space;
  plan::TransformerConfig& model = space.training.model;
  model.layers = layers;
  model.hidden = 2048;
  model.heads = model.kv_heads = 16;
  model.head_channels = model.value_channels = 128;
  model.feed_forward = 8192;
  model.vocabulary = 64;
  space.training.sequence = 2048;
  space.training.batch = batch;
  space.gpus = gpus;
  space.tensor = {1};
  space.microbatch = {1};
  space.schedules = {"1f1b"};
  space.recompute = {plan::RecomputeMode::None};
  space.zero = {0};
  return space;
}

/// Returns the iteration of 1F1B on two ranks without transfers, in seconds. If the last rank is
/// the busier one, it waits only for the first pass. If it is the first rank, that computes a
/// forward ahead, and a backward at the end, while the last rank computes the action that it waits
/// for.
double two_ranks_s(const models::TransformerTimes& times, const std::vector<int>& layers,
                   const std::vector<double>& speeds, int microbatches) {
  const auto pass = [&](std::size_t rank, auto part) {
    const models::PassSeconds& end = rank == 0 ? times.embedding : times.head;
    return (layers[rank] * times.layer.*part + end.*part) / speeds[rank];
  };
  const double forward = pass(0, &models::PassSeconds::forward),
               backward = pass(0, &models::PassSeconds::backward),
               last =
                   pass(1, &models::PassSeconds::forward) + pass(1, &models::PassSeconds::backward);
  const double first_s = microbatches * (forward + backward) + std::max(0.0, last - forward) +
                         std::max(0.0, last - backward);
  const double last_s = forward + backward + microbatches * last;
  return std::max(first_s, last_s) +
         std::max(times.first_end_s / speeds[0], times.last_end_s / speeds[1]);
}

TEST_CASE("A kind of node that is twice as fast gets twice the layers", "[planner]") {
  const plan::NodeKind fast{
      .nodes = 1, .device = {.name = "new", .memory = {}, .flops_per_s = 300e12}, .speed = 1},
      slow{
          .nodes = 1, .device = {.name = "old", .memory = {}, .flops_per_s = 100e12}, .speed = 0.5};
  search::PlanSpace space = space_of(30, 2, 64);
  space.pipeline = {2};
  for (const auto& kinds : {std::vector{fast, slow}, std::vector{slow, fast}}) {
    const plan::Cluster cluster = quick_links(kinds);
    const search::FoundPlan plan =
        search::search_plans(cluster, space, {.most_plans = 1}).plans.front();
    const bool is_fast_first = plan.cluster.mixture->kinds.front() == fast;
    const auto layers = is_fast_first ? std::vector{20, 10} : std::vector{10, 20};
    const auto speeds = is_fast_first ? std::vector{1.0, 0.5} : std::vector{0.5, 1.0};
    CHECK(plan.cut.stage_layers == layers);
    const models::TransformerTimes times = models::times_on(cluster, space.training, plan.cut);
    CHECK(plan.iteration_s == Approx(two_ranks_s(times, layers, speeds, 64)).epsilon(0.002));
    CHECK(
        plan.mfu ==
        Approx(models::training_flops(space.training) / (plan.iteration_s * 400e12)).epsilon(1e-3));
  }
  space.stage_sizes = {search::StageSizes::Equal};
  const search::FoundPlan even =
      search::search_plans(quick_links({fast, slow}), space, {.most_plans = 1}).plans.front();
  CHECK(even.cut.stage_layers.empty());
  const bool is_fast_first = even.cluster.mixture->kinds.front() == fast;
  const auto speeds = is_fast_first ? std::vector{1.0, 0.5} : std::vector{0.5, 1.0};
  const models::TransformerTimes times = models::times_on(even.cluster, space.training, even.cut);
  CHECK(even.iteration_s == Approx(two_ranks_s(times, {15, 15}, speeds, 64)).epsilon(0.002));
}

TEST_CASE("Ranks with individual speeds get layers in proportion", "[planner]") {
  plan::Cluster cluster = quick_links({{.nodes = 4, .device = {.name = "new", .memory = {}}}});
  cluster.mixture.reset();
  cluster.rank_speeds = {1, 0.5, 1, 0.5};
  search::PlanSpace space = space_of(24, 4, 64);
  const search::FoundPlan plan =
      search::search_plans(cluster, space, {.most_plans = 1}).plans.front();
  CHECK(plan.cut.stage_layers == std::vector{8, 4, 8, 4});
  space.pipeline = {2};
  CHECK(test::error_of([&] { search::search_plans(cluster, space); }) ==
        "the cluster's rank_speeds is for pipelines of 4 ranks, but no such pipeline size is "
        "searched");
  space.pipeline.clear();
  space.gpus = 2;
  CHECK(test::error_of([&] { search::search_plans(cluster, space); }) ==
        "the cluster's rank_speeds is for pipelines of 4 ranks, but 2 GPUs cannot form one");
}

/// Returns the shortest iteration over all orders of kinds, numbers of ranks and cuts that fit
/// every rank.
double least_of_all(const plan::Cluster& cluster, const search::PlanSpace& space) {
  double least = std::numeric_limits<double>::infinity();
  for (const plan::NodeOrder& order : plan::node_orders(cluster, space.gpus))
    for (int ranks = 1; ranks <= std::min(space.gpus, space.training.model.layers); ++ranks) {
      if (space.gpus % ranks != 0 || space.training.batch % (space.gpus / ranks) != 0)
        continue;
      plan::Cut cut{.data = space.gpus / ranks, .pipeline = ranks};
      for_each_cut(space.training.model.layers, ranks, [&](const std::vector<int>& layers) {
        cut.stage_layers = layers;
        plan::Scenario scenario = search::scenario_of(order.cluster, space.training, cut);
        const auto caps = plan::cluster_of_ranks(scenario);
        scenario.cluster = plan::with_unlimited_memory(scenario.cluster);
        const search::PlanFacts facts = search::facts_of(
            scenario, models::transformer_costs(scenario.cluster, space.training, cut));
        if (facts.iteration_s >= least)
          return;
        const auto needs = models::replayed_memory(space.training, cut);
        for (int rank = 0; rank < ranks; ++rank)
          if (const plan::Bytes cap = memory_of(caps, rank);
              cap > plan::Bytes{} && needs[static_cast<std::size_t>(rank)].total() > cap)
            return;
        least = facts.iteration_s;
      });
    }
  return least;
}

TEST_CASE("No order of the kinds and no partition is faster than the plan found", "[planner]") {
  std::mt19937 random(5);
  std::uniform_real_distribution speed(0.3, 1.5), memory(2.1e9, 7e9);
  int found = 0, none = 0, turned = 0;
  for (int round = 0; round < 24; ++round) {
    std::vector<plan::NodeKind> kinds;
    for (int kind = 0; kind < 2 + round % 2; ++kind)
      kinds.push_back({.nodes = 1 + static_cast<int>(random() % 2),
                       .device = {.name = fmt::format("kind {}", kind),
                                  .memory = plan::whole_bytes(memory(random))},
                       .speed = speed(random)});
    plan::Cluster cluster = quick_links(std::move(kinds));
    cluster.between_nodes.bandwidth_per_s = 1e9;
    cluster.machine->constants.context_bytes = 0.3e9;
    const search::PlanSpace space = space_of(6, cluster.nodes, 12 * cluster.nodes);
    const double least = least_of_all(cluster, space);
    const search::PlanAnswer answer = search::search_plans(cluster, space, {.most_plans = 100});
    CAPTURE(round, least, answer.plans.size());
    if (answer.plans.empty()) {
      CHECK(least == std::numeric_limits<double>::infinity());
      ++none;
      continue;
    }
    ++found;
    const search::FoundPlan& best = answer.plans.front();
    CHECK(best.iteration_s == Approx(least).epsilon(1e-12));
    CHECK(best.least_s <= best.iteration_s);
    turned += best.cluster == cluster ? 0 : 1;
    const search::FoundPlan quick =
        search::search_plans(cluster, space, {.most_plans = 1}).plans.front();
    CHECK(quick.iteration_s == Approx(least).epsilon(1e-12));
  }
  CHECK(found > 12);
  CHECK(none > 2);
  CHECK(turned > 6);
}

}  // namespace uneven_ranks_test
