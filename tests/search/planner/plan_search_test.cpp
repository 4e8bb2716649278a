#include "pipewright/search/planner/plan_search.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "pipewright/models/transformer/transformer_counts.hpp"
#include "pipewright/models/transformer/transformer_times.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/model/known_transformers.hpp"
#include "pipewright/search/calibration/run_costs.hpp"
#include "pipewright/search/calibration/run_simulator.hpp"
#include "support/catch.hpp"
#include "support/error_of.hpp"

namespace plan_search_test {

using namespace pipewright;
using plan::RecomputeMode;
using search::FoundPlan;
using search::PlanSpace;
using test::error_of;

plan::Cluster cluster_of(int nodes, double memory = 80e9) {
  plan::Cluster cluster;
  cluster.nodes = nodes;
  cluster.devices_per_node = 8;
  cluster.device.memory.value = static_cast<std::int64_t>(memory);
  cluster.device.flops_per_s = 312e12;
  cluster.device.memory_bandwidth_per_s = 2e12;
  cluster.within_node = {.latency = {5e-6}, .bandwidth_per_s = 300e9};
  cluster.between_nodes = {.latency = {1e-5}, .bandwidth_per_s = 100e9, .shared = true};
  cluster.machine.emplace();
  return cluster;
}

PlanSpace space_of(int layers, int hidden, int gpus, int batch) {
  PlanSpace space;
  plan::TransformerConfig& model = space.training.model;
  model.layers = layers;
  model.hidden = hidden;
  model.heads = model.kv_heads = hidden / 64;
  model.head_channels = model.value_channels = 64;
  model.feed_forward = 4 * hidden;
  model.vocabulary = 50304;
  model.norm = plan::NormKind::Layer;
  model.query_bias = model.projection_bias = model.feed_forward_bias = true;
  space.training.sequence = 1024;
  space.training.batch = batch;
  space.training.attention = plan::AttentionKind::Scores;
  space.gpus = gpus;
  return space;
}

/// Returns a random small space, which the seed of the generator determines completely.
PlanSpace random_space(std::mt19937& random) {
  const auto one_of = [&](std::initializer_list<int> values) {
    return *(values.begin() + random() % values.size());
  };
  PlanSpace space = space_of(one_of({2, 3, 4, 6, 8, 12}), one_of({256, 512, 1024, 2048}),
                             one_of({1, 2, 4, 8, 16, 32}), one_of({8, 12, 16, 32, 64}));
  space.recompute = {one_of({0, 1}) != 0 ? RecomputeMode::Full : RecomputeMode::None};
  space.zero = {one_of({0, 1, 2, 3})};
  space.sequence_parallel = {false};
  return space;
}

std::string text_of(const FoundPlan& plan) {
  const plan::Cut& cut = plan.cut;
  return fmt::format(
      "t{} p{} d{} c{} {} v{} {} mb{} r{} z{} sp{} {:.17g}", cut.tensor, cut.pipeline, cut.data,
      cut.context, schedule_name(cut), cut.chunks, fmt::join(cut.stage_layers, "-"), cut.microbatch,
      static_cast<int>(cut.recompute), cut.zero, cut.sequence_parallel, plan.iteration_s);
}

std::vector<std::string> texts_of(const std::vector<FoundPlan>& plans) {
  std::vector<std::string> texts;
  for (const FoundPlan& plan : plans)
    texts.push_back(text_of(plan));
  return texts;
}

TEST_CASE("No candidate is faster than its bound", "[sim][planner]") {
  std::mt19937 random(7);
  std::size_t checked = 0;
  double closest = 0;
  while (checked < 4000) {
    const plan::Cluster cluster = cluster_of(random() % 2 == 0 ? 4 : 8);
    PlanSpace space = random_space(random);
    space.schedules = models::planned_schedules();
    models::PipelineShapes shapes;
    search::RunSimulator simulator(cluster);
    plan::MachineConstants constants;
    // Includes machines whose transfers take long, or whose layers take almost no time in
    // comparison.
    constants.transfer_efficiency = std::pow(10, -3.0 * static_cast<double>(random() % 100) / 100);
    constants.layer_launch_s = random() % 2 == 0 ? 0 : 2e-3;
    sim::StepCosts costs;
    const plan::TransformerTraining& training = space.training;
    for (const plan::Cut& cut : candidates_of(cluster, space, shapes)) {
      const auto times =
          models::transformer_times(models::transformer_work(cluster, training, cut), constants);
      search::set_step_costs(costs, cluster, training.model, cut, times);
      const int microbatches = cut.microbatches(training.batch);
      const double least =
          search::least_iteration(costs, *shapes.find(cut, training.batch), microbatches);
      const double exact = simulator.iteration(training, cut, times);
      CAPTURE(cut.pipeline, cut.tensor, cut.data, cut.chunks, microbatches, least, exact);
      if (least > exact * (1 + 1e-12))
        FAIL("the bound is above the simulation");
      closest = std::max(closest, least / exact);
      ++checked;
    }
  }
  CHECK(closest == Approx(1));  // without a pipeline the bound is the time
}

TEST_CASE("A candidate that is skipped by its bound would not be among the best",
          "[sim][planner]") {
  std::mt19937 random(11);
  std::size_t spared = 0;
  for (int round = 0; round < 150; ++round) {
    const PlanSpace space = random_space(random);
    // Tight memory, so that some plans do not fit.
    const plan::Cluster cluster = cluster_of(4, random() % 2 == 0 ? 80e9 : 3e9);
    const search::PlanAnswer quick = search::search_plans(cluster, space, {.most_plans = 3});
    const search::PlanAnswer all =
        search::search_plans(cluster, space, {.most_plans = 3, .exhaustive = true});
    CHECK(texts_of(quick.plans) == texts_of(all.plans));
    CHECK(quick.candidates == quick.impossible + quick.too_large + quick.bounded + quick.simulated);
    CHECK(all.bounded == 0);
    spared += quick.bounded;
  }
  CHECK(spared > 1000);
}

TEST_CASE("The front holds every plan that no other one beats in both time and memory",
          "[sim][planner]") {
  std::mt19937 random(13);
  for (int round = 0; round < 60; ++round) {
    const PlanSpace space = random_space(random);
    const plan::Cluster cluster = cluster_of(4);
    const auto quick = search::search_plans(cluster, space, {.pareto = true});
    const auto all = search::search_plans(cluster, space, {.pareto = true, .exhaustive = true});
    const auto every =
        search::search_plans(cluster, space, {.most_plans = 1'000'000, .exhaustive = true});
    for (const FoundPlan& plan : every.plans) {
      CAPTURE(text_of(plan));
      CHECK(plan.least_s <= plan.iteration_s);
      CHECK(plan.least_bytes <= plan.peak_bytes);
    }
    REQUIRE(quick.plans.size() == all.plans.size());
    for (std::size_t at = 0; at < all.plans.size(); ++at) {
      CHECK(quick.plans[at].iteration_s == all.plans[at].iteration_s);
      CHECK(quick.plans[at].peak_bytes == all.plans[at].peak_bytes);
      if (at > 0)
        CHECK(quick.plans[at].peak_bytes < quick.plans[at - 1].peak_bytes);
    }
    for (const FoundPlan& plan : every.plans)
      CHECK(std::any_of(quick.plans.begin(), quick.plans.end(), [&](const FoundPlan& best) {
        return best.iteration_s <= plan.iteration_s && best.peak_bytes <= plan.peak_bytes;
      }));
  }
}

TEST_CASE("Regret is zero where constants are certain, and positive where they are not",
          "[sim][planner]") {
  plan::Cluster cluster = cluster_of(4);
  const PlanSpace space = space_of(24, 2048, 32, 64);
  const auto plans = search::search_plans(cluster, space).plans;
  const search::Regret unsure = search::regret_of(cluster, space.training, plans, 50);
  CHECK(unsure.mean > 0);
  CHECK(unsure.best_share < 1);
  CHECK(search::regret_of(cluster, space.training, plans, 50).mean == unsure.mean);
  for (const plan::ConstantRule& rule : plan::constant_rules())
    cluster.machine->spread.*rule.member = 0;
  const search::Regret sure = search::regret_of(cluster, space.training, plans, 10);
  CHECK(sure.mean == Approx(0).margin(1e-12));
  CHECK(sure.best_share == Approx(1));
}

TEST_CASE("Candidates satisfy the rules of divisibility, and each occurs once", "[sim][planner]") {
  const plan::Cluster cluster = cluster_of(4);
  PlanSpace space = space_of(12, 768, 32, 48);
  models::PipelineShapes shapes;
  std::set<std::string> seen;
  const int layers = space.training.model.layers, batch = space.training.batch;
  for (const plan::Cut& cut : candidates_of(cluster, space, shapes)) {
    CHECK(cut.tensor * cut.pipeline * cut.data * cut.context == 32);
    CHECK(cut.tensor <= 8);
    if (cut.stage_layers.empty())
      CHECK(layers % cut.stages() == 0);
    else
      CHECK(std::accumulate(cut.stage_layers.begin(), cut.stage_layers.end(), 0) == layers);
    CHECK(batch % (cut.data * cut.microbatch) == 0);
    if (schedule_name(cut) == "interleaved-1f1b")
      CHECK(cut.microbatches(batch) % cut.pipeline == 0);
    CHECK(seen.insert(text_of({.cut = cut})).second);
  }
  CHECK(seen.size() > 500);
  space.tensor = {3};  // 32 is not a multiple of it
  CHECK(candidates_of(cluster, space, shapes).empty());
}

TEST_CASE("The best plan fits, and a faster one that does not fit is named", "[sim][planner]") {
  const PlanSpace space = space_of(24, 2048, 8, 64);
  const plan::Cluster large = cluster_of(1), small = cluster_of(1, 7e9);
  const search::PlanAnswer free = search::search_plans(large, space);
  const search::PlanAnswer tight = search::search_plans(small, space);
  REQUIRE(!free.plans.empty());
  REQUIRE(!tight.plans.empty());
  CHECK(!free.nearest);
  CHECK(tight.plans.front().peak_bytes <= 7e9);
  CHECK(tight.plans.front().iteration_s > free.plans.front().iteration_s);
  REQUIRE(tight.nearest);
  CHECK(tight.nearest->peak_bytes > 7e9);
  CHECK(tight.nearest->iteration_s < tight.plans.front().iteration_s);
  CHECK(tight.nearest->iteration_s >= free.plans.front().iteration_s);
}

TEST_CASE("If no plan fits, the smallest is named", "[sim][planner]") {
  const search::PlanAnswer answer =
      search::search_plans(cluster_of(1, 1e9), space_of(24, 2048, 8, 64));
  CHECK(answer.plans.empty());
  REQUIRE(answer.nearest);
  CHECK(answer.nearest->peak_bytes > 1e9);
  CHECK(answer.too_large == answer.candidates);
}

TEST_CASE(
    "The named plan is the smallest of all, whichever parameters are gathered for a stage's turn",
    "[sim][planner]") {
  std::mt19937 random(17);
  for (int round = 0; round < 30; ++round) {
    PlanSpace space = random_space(random);
    space.zero = {0, 1, 2, 3};
    space.recompute = {RecomputeMode::None, RecomputeMode::Full};
    space.microbatch = {1, 2};
    const auto none = search::search_plans(cluster_of(4, 1), space);
    const auto every =
        search::search_plans(cluster_of(4), space, {.most_plans = 1'000'000, .exhaustive = true});
    REQUIRE(none.plans.empty());
    REQUIRE(none.nearest);
    REQUIRE(!every.plans.empty());
    for (const FoundPlan& plan : every.plans) {
      CAPTURE(text_of(plan), text_of(*none.nearest));
      CHECK(plan.least_bytes <= plan.peak_bytes);
      CHECK(none.nearest->peak_bytes <= plan.peak_bytes);
    }
  }
}

TEST_CASE("With any memory, the plans are the fastest that fit, or the smallest is named",
          "[sim][planner]") {
  std::mt19937 random(23);
  int none_fit = 0, some_fit = 0;
  for (int round = 0; none_fit < 8 || some_fit < 16; ++round) {
    REQUIRE(round < 30);
    PlanSpace space = random_space(random);
    space.recompute = {RecomputeMode::None, RecomputeMode::Full};
    space.microbatch = {1, 2};
    const auto every =
        search::search_plans(cluster_of(4), space, {.most_plans = 1'000'000, .exhaustive = true});
    if (every.plans.empty())
      continue;
    std::vector<double> peaks;
    for (const FoundPlan& plan : every.plans)
      peaks.push_back(plan.evened_bytes);
    std::ranges::sort(peaks);
    for (const double memory : {peaks.front() - 1, peaks.front(), peaks[peaks.size() / 20] - 1,
                                peaks[peaks.size() / 20], peaks[peaks.size() / 2]}) {
      const auto answer = search::search_plans(cluster_of(4, memory), space, {.most_plans = 3});
      std::vector<double> fitting;
      for (const FoundPlan& plan : every.plans)
        if (plan.evened_bytes <= memory && fitting.size() < 3)
          fitting.push_back(plan.iteration_s);
      std::vector<double> found;
      for (const FoundPlan& plan : answer.plans)
        found.push_back(plan.iteration_s);
      CAPTURE(round, memory);
      CHECK(found == fitting);
      ++(fitting.empty() ? none_fit : some_fit);
      if (!fitting.empty())
        continue;
      REQUIRE(answer.nearest);
      CHECK(answer.nearest->evened_bytes == peaks.front());
    }
  }
}

TEST_CASE("A batch that is given in tokens is rejected at once, with its samples",
          "[sim][planner]") {
  for (const int batch : {4'194'304, 1 << 30, std::numeric_limits<int>::max()}) {
    const auto message =
        error_of([&] { search::search_plans(cluster_of(8), space_of(32, 4096, 64, batch), {}); });
    CAPTURE(message);
    CHECK(message.find(fmt::format("a batch of {} samples with 1024 tokens each", batch)) == 0);
    CHECK(message.find(fmt::format("{} tokens are {} samples", batch, batch / 1024)) !=
          std::string::npos);
  }
}

TEST_CASE("A candidate with too many passes to be timed is impossible with that reason",
          "[sim][planner]") {
  PlanSpace space = space_of(8, 256, 8, 1 << 16);
  space.training.sequence = 64;
  space.pipeline = {8};
  space.microbatch = {1};
  const auto answer = search::search_plans(cluster_of(1), space, {});
  CHECK(answer.plans.empty());
  CHECK(answer.impossible == answer.candidates);
  CHECK(answer.why_impossible ==
        "65536 microbatches on 8 stages are more than the 200000 passes that can be timed");
}

TEST_CASE("A search of plans that is stopped keeps its results so far", "[sim][planner]") {
  int asked = 0;
  const search::PlanAnswer answer = search::search_plans(
      cluster_of(4), space_of(12, 768, 32, 48),
      {.most_plans = 5, .progress = [&](std::size_t, std::size_t, const FoundPlan* best) {
         return best == nullptr || ++asked < 3;
       }});
  CHECK(answer.interrupted);
  CHECK(answer.plans.size() == answer.simulated);
  CHECK(!answer.plans.empty());
}

TEST_CASE("The FLOPs of GPT-3 are those of Narayanan et al.", "[sim][planner]") {
  const auto model = plan::find_transformer("GPT3 175B");
  REQUIRE(model);
  // 96 B s l h² (1 + s/6h + V/16lh), of which the recomputation's 24 B s l h² (1 + s/6h) are not.
  const double b = 1536, s = 2048, l = 96, h = 12288, v = 51200;
  const double formula = 72 * b * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h));
  CHECK(models::training_flops({.model = *model, .sequence = 2048, .batch = 1536}) ==
        Approx(formula).epsilon(1e-4));
}

}  // namespace plan_search_test
