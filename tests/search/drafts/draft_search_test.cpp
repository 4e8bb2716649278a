#include "pipewright/search/drafts/draft_search.hpp"

#include <algorithm>
#include <limits>
#include <random>
#include <set>

#include "pipewright/plan/cluster/node_orders.hpp"
#include "search/support/drafts.hpp"
#include "support/error_of.hpp"

namespace draft_search_test {

using namespace pipewright;
using search::Draft;
using search::DraftPlan;
using search::DraftSpace;
using search::search_drafts;
using test::answered;
using test::error_of;
using test::shared_card;

/// Returns a draft whose layers take random times.
Draft random_draft(std::mt19937& random) {
  Draft draft = shared_card({"pipeline.microbatches=6", "pipeline.replicas=1"});
  for (plan::LayerCost& layer : draft.costs->layers) {
    const double factor = 0.2 + static_cast<double>(random() % 100) / 25;
    layer.forward = layer.forward * factor;
    layer.input_gradient = layer.input_gradient * factor;
    layer.weight_gradient = layer.weight_gradient * factor;
  }
  return draft;
}

/// Returns all ways to partition the layers.
std::vector<std::vector<int>> all_cuts(int layers, int stages) {
  std::vector<std::vector<int>> cuts;
  std::vector<bool> border(static_cast<std::size_t>(layers) - 1, false);
  std::fill(border.end() - (stages - 1), border.end(), true);
  do {
    std::vector<int>& cut = cuts.emplace_back(1, 0);
    for (int layer = 1; layer < layers; ++layer)
      if (border[static_cast<std::size_t>(layer) - 1])
        cut.push_back(layer);
    cut.push_back(layers);
  } while (std::next_permutation(border.begin(), border.end()));
  return cuts;
}

TEST_CASE("No partition under any schedule on the same devices is faster than the best plan",
          "[loop][draft_search]") {
  std::mt19937 random(3);
  for (int round = 0; round < 6; ++round) {
    const Draft draft = random_draft(random);
    const std::vector<double> speeds{1, round % 2 == 0 ? 1 : 0.6, 0.9};
    const DraftSpace space{
        {.pipeline = {3}, .chunks = {1, 2}, .schedules = {"1f1b", "gpipe", "zb-h1", "zbv"}},
        3,
        speeds};
    const auto found = search_drafts(draft, space);
    REQUIRE(!found.plans.empty());
    double best = std::numeric_limits<double>::infinity();
    search::WhatIf what_if;
    for (const auto& [schedule, chunks] : std::vector<std::pair<std::string, int>>{
             {"1f1b", 1}, {"gpipe", 1}, {"zb-h1", 1}, {"zbv", 2}}) {
      Draft each = draft;
      each.scenario.pipeline.ranks = 3;
      each.scenario.pipeline.schedule = schedule;
      each.scenario.pipeline.chunks = chunks;
      each.scenario.cluster.rank_speeds = speeds;
      for (const auto& cut : all_cuts(static_cast<int>(draft.costs->layers.size()), 3 * chunks)) {
        each.scenario.pipeline.partition = cut;
        best = std::min(best, answered(what_if.answer(each)).figures.iteration_s);
      }
    }
    CHECK(found.plans.front().figures.iteration_s == Approx(best).epsilon(1e-12));
  }
}

TEST_CASE("The search assigns stages to kinds of nodes, each within its memory",
          "[loop][draft_search]") {
  std::mt19937 random(9);
  int turned = 0, limited = 0;
  for (int round = 0; round < 6; ++round) {
    Draft draft = random_draft(random);
    plan::Cluster& cluster = draft.scenario.cluster;
    cluster.nodes = 3;
    cluster.devices_per_node = 1;
    cluster.between_nodes = cluster.within_node;
    cluster.rank_speeds.clear();
    const std::int64_t cap = round % 2 == 0 ? 0 : 40'000'000;
    cluster.mixture = {
        .kinds = {{.nodes = 2, .device = {.name = "new", .memory = {2 * cap}}, .speed = 1},
                  {.nodes = 1, .device = {.name = "old", .memory = {cap}}, .speed = 0.5}}};
    const DraftSpace space{{.pipeline = {3}, .schedules = {"1f1b", "zbv"}}, 3};
    const auto found = search_drafts(draft, space);
    double best = std::numeric_limits<double>::infinity();
    search::WhatIf what_if;
    for (const plan::NodeOrder& order : plan::node_orders(cluster, 3))
      for (const auto& [schedule, chunks] : {std::pair{"1f1b", 1}, {"zbv", 2}}) {
        Draft each = draft;
        each.scenario.cluster = order.cluster;
        each.scenario.pipeline.ranks = 3;
        each.scenario.pipeline.schedule = schedule;
        each.scenario.pipeline.chunks = chunks;
        for (const auto& cut : all_cuts(static_cast<int>(draft.costs->layers.size()), 3 * chunks)) {
          each.scenario.pipeline.partition = cut;
          const auto answer = what_if.answer(each);
          const auto* const told = std::get_if<search::Answer>(&answer);
          if (told != nullptr && !told->over)
            best = std::min(best, told->figures.iteration_s);
          else
            ++limited;
        }
      }
    CAPTURE(round, best);
    if (found.plans.empty()) {
      CHECK(best == std::numeric_limits<double>::infinity());
      continue;
    }
    const DraftPlan& plan = found.plans.front();
    CHECK(plan.figures.iteration_s == Approx(best).epsilon(1e-12));
    CHECK(answered(what_if.answer(plan.draft)).figures.iteration_s == plan.figures.iteration_s);
    CHECK((plan.fullest.cap == plan::Bytes{} || plan.fullest.needed <= plan.fullest.cap));
    const bool is_turned = plan.draft.scenario.cluster.mixture->kinds.front().device.name == "old";
    turned += is_turned ? 1 : 0;
    CHECK(plan.devices == (is_turned ? std::vector{2, 0, 1} : std::vector{0, 1, 2}));
    CHECK(words_of(plan).find(is_turned ? ", ranks on old 0, new 1-2"
                                        : ", ranks on new 0-1, old 2") != std::string::npos);
  }
  CHECK(turned > 0);
  CHECK(turned < 6);
  CHECK(limited > 0);
}

TEST_CASE("Tensor-parallel ranks count towards the available devices", "[loop][draft_search]") {
  const Draft draft = shared_card({"pipeline.tensor=2", "pipeline.microbatches=8"});
  const auto found = search_drafts(draft, {{.schedules = {"1f1b"}}, 4});
  REQUIRE(!found.plans.empty());
  for (const DraftPlan& plan : found.plans) {
    const int ranks = plan::ranks_of_job(plan.draft.scenario.pipeline);
    CHECK(ranks <= 4);
    CHECK(ranks % 2 == 0);
    CHECK(plan.devices.size() == static_cast<std::size_t>(ranks));
  }
}

TEST_CASE("No plan is faster than its bound, and skipping by the bound loses no better plan",
          "[loop][draft_search]") {
  std::mt19937 random(5);
  std::size_t spared = 0;
  for (int round = 0; round < 10; ++round) {
    const Draft draft = random_draft(random);
    const DraftSpace space{{}, 1 + static_cast<int>(random() % 5)};
    const auto all = search_drafts(draft, space, {.most_plans = 100'000});
    CHECK(all.bounded == 0);
    for (const DraftPlan& plan : all.plans)
      CHECK(search::iteration_without_bubble(*plan.draft.costs, plan.draft.scenario) <=
            plan.figures.iteration_s * (1 + 1e-12));
    const auto few = search_drafts(draft, space, {.most_plans = 2});
    spared += few.bounded;
    for (std::size_t at = 0; at < few.plans.size(); ++at)
      CHECK(few.plans[at].figures.iteration_s == all.plans[at].figures.iteration_s);
  }
  CHECK(spared > 20);
}

TEST_CASE("A plan's simulation takes the time that the search reports, and trains the same batch",
          "[loop][draft_search]") {
  const Draft draft = shared_card({"pipeline.microbatches=8"});
  search::WhatIf what_if;
  const int samples =
      draft.scenario.pipeline.replicas * 8 * draft.scenario.training.microbatch_size;
  const auto found = search_drafts(draft, {{}, 4}, {.most_plans = 30});
  REQUIRE(found.plans.size() == 30);
  CHECK(std::is_sorted(found.plans.begin(), found.plans.end(), [](const auto& a, const auto& b) {
    return std::pair{a.figures.iteration_s, a.figures.peak} <
           std::pair{b.figures.iteration_s, b.figures.peak};
  }));
  for (const DraftPlan& plan : found.plans) {
    const auto answer = answered(what_if.answer(plan.draft));
    CHECK(answer.figures.iteration_s == plan.figures.iteration_s);
    CHECK(answer.plan.partition.boundaries == plan.boundaries);
    const plan::Scenario& scenario = plan.draft.scenario;
    CHECK(scenario.pipeline.replicas * scenario.pipeline.microbatches *
              scenario.training.microbatch_size ==
          samples);
    CHECK(plan::ranks_of_job(scenario.pipeline) <= 4);
  }
}

TEST_CASE("A plan for resumed training keeps the microbatches and the groups of gradients",
          "[loop][draft_search]") {
  const Draft draft = shared_card({"pipeline.microbatches=6", "pipeline.replicas=2"});
  DraftSpace space{{.microbatch = {1}}, 5};
  space.keeps_bits = true;
  const auto found = search_drafts(draft, space, {.most_plans = 1000});
  REQUIRE(!found.plans.empty());
  for (const DraftPlan& plan : found.plans) {
    const plan::Scenario& scenario = plan.draft.scenario;
    CHECK(scenario.training.gradient_groups == 2);
    CHECK(scenario.pipeline.replicas <= 2);
    CHECK(scenario.training.microbatch_size == draft.scenario.training.microbatch_size);
  }
}

TEST_CASE("A bidirectional schedule cannot resume training with all gradients in one group",
          "[loop][draft_search]") {
  const Draft draft = shared_card({"pipeline.microbatches=8", "pipeline.replicas=1"});
  const auto two_ways = [&](int groups) {
    Draft grouped = draft;
    grouped.scenario.training.gradient_groups = groups;
    DraftSpace space{{.pipeline = {2}, .schedules = {"dualpipe", "chimera"}}, 2};
    space.keeps_bits = true;
    return search_drafts(grouped, space);
  };
  CHECK(two_ways(1).plans.empty());
  CHECK(two_ways(1).impossible == 2);
  CHECK(two_ways(2).plans.size() == 2);
}

TEST_CASE("The slowest device is left out where that is faster", "[loop][draft_search]") {
  const Draft draft = shared_card({"pipeline.microbatches=8"});
  const auto with = search_drafts(draft, {{}, 3, {1, 0.05, 1}});
  CHECK(with.plans.front().devices == std::vector{0, 2});
  const auto without = search_drafts(draft, {{}, 2});
  CHECK(with.plans.front().figures.iteration_s ==
        Approx(without.plans.front().figures.iteration_s).epsilon(1e-12));
}

TEST_CASE("A cap excludes plans, and the nearest excluded one is named", "[loop][draft_search]") {
  Draft draft = shared_card({"pipeline.microbatches=8"});
  const auto free = search_drafts(draft, {{}, 2});
  const plan::Bytes best = free.plans.front().figures.peak;
  draft.scenario.cluster.device.memory = {best.value - 1};
  const auto tight = search_drafts(draft, {{}, 2});
  for (const DraftPlan& plan : tight.plans)
    CHECK(plan.figures.peak < best);
  if (!tight.plans.empty())
    CHECK(tight.plans.front().figures.iteration_s >= free.plans.front().figures.iteration_s);
  REQUIRE(tight.nearest);
  CHECK(tight.nearest->figures.peak >= best);
  draft.scenario.cluster.device.memory = {1};
  const auto none = search_drafts(draft, {{}, 2});
  CHECK(none.plans.empty());
  REQUIRE(none.nearest);
  CHECK(none.nearest->figures.peak > plan::Bytes{1});
}

TEST_CASE("If no draft fits, the smallest of all is named", "[loop][draft_search]") {
  Draft draft = shared_card({"pipeline.microbatches=8"});
  const DraftSpace space{{.microbatch = {1, 2, 4}}, 2};
  const auto every = search_drafts(draft, space, {.most_plans = 100'000});
  REQUIRE(every.plans.size() > 20);
  plan::Bytes smallest = every.plans.front().fullest.needed;
  for (const DraftPlan& plan : every.plans)
    smallest = std::min(smallest, plan.fullest.needed);
  CHECK(smallest < every.plans.front().fullest.needed);
  draft.scenario.cluster.device.memory = {1};
  const auto none = search_drafts(draft, space, {.most_plans = 1});
  CHECK(none.plans.empty());
  REQUIRE(none.nearest);
  CHECK(none.nearest->fullest.needed <= smallest);
  // With that memory, a plan fits.
  draft.scenario.cluster.device.memory = none.nearest->fullest.needed;
  CHECK(!search_drafts(draft, space, {.most_plans = 1}).plans.empty());
}

TEST_CASE("A batch that no candidate divides is rejected", "[loop][draft_search]") {
  const Draft draft = shared_card({"pipeline.microbatches=7"});
  CHECK(error_of([&] {
          search_drafts(draft, {{.pipeline = {2}, .microbatch = {1000}}, 2});
        }).find("nothing divides") == 0);
}

TEST_CASE("A schedule that does not train the batch in one step is rejected, as are too many ranks",
          "[loop][draft_search]") {
  const Draft draft = shared_card();
  for (const char* name : {"inference", "data-parallel", "pipedream"})
    CHECK(error_of([&] {
            search_drafts(draft, {{.schedules = {name}}, 2});
          }).find(std::string(name) + " cannot be chosen: ") == 0);
  CHECK(error_of([&] {
          search_drafts(draft, {{.pipeline = {2, 3}}, 2});
        }) == "3 ranks are requested, but there are 2 devices");
}

TEST_CASE("Tensor parallelism is searched, and no bound skips a faster plan",
          "[loop][draft_search]") {
  const Draft draft = shared_card({"pipeline.microbatches=8"});
  const DraftSpace space{{.tensor = {1, 2, 4}, .schedules = {"1f1b", "looped-bfs"}}, 8};
  const auto all = search_drafts(draft, space, {.most_plans = 100'000});
  CHECK(all.bounded == 0);
  std::set<int> sizes;
  search::WhatIf what_if;
  for (const DraftPlan& plan : all.plans) {
    sizes.insert(plan.draft.scenario.pipeline.tensor);
    CHECK(plan::ranks_of_job(plan.draft.scenario.pipeline) <= 8);
    CHECK(search::iteration_without_bubble(*plan.draft.costs, plan.draft.scenario) <=
          plan.figures.iteration_s * (1 + 1e-12));
    CHECK(answered(what_if.answer(plan.draft)).figures.iteration_s == plan.figures.iteration_s);
  }
  CHECK(sizes == std::set{1, 2, 4});
  const auto few = search_drafts(draft, space, {.most_plans = 2});
  REQUIRE(few.plans.size() == 2);
  for (std::size_t at = 0; at < few.plans.size(); ++at)
    CHECK(few.plans[at].figures.iteration_s == all.plans[at].figures.iteration_s);
}

TEST_CASE("Expert parallelism is searched with the estimated costs of each partition",
          "[loop][draft_search]") {
  const auto document =
      plan::JsonDocument::read(PIPEWRIGHT_SOURCE_DIR "/scenarios/qwen3-moe-tiny/scenario.json");
  const Draft draft{.scenario = plan::scenario_from_json(document)};
  const auto found =
      search_drafts(draft, {{.tensor = {1, 2}, .expert = {1, 2, 4}, .schedules = {"1f1b"}}, 4},
                    {.most_plans = 1000});
  std::set<std::pair<int, int>> sizes;
  for (const DraftPlan& plan : found.plans) {
    const plan::Pipeline& pipeline = plan.draft.scenario.pipeline;
    CHECK(pipeline.replicas % pipeline.expert == 0);
    sizes.emplace(pipeline.tensor, pipeline.expert);
    const plan::LayerCosts costs = costs_of(plan.draft);
    CHECK(costs.tensor == pipeline.tensor);
    CHECK(costs.expert == pipeline.expert);
  }
  CHECK(sizes == std::set<std::pair<int, int>>{{1, 1}, {1, 2}, {1, 4}, {2, 1}, {2, 2}});
}

TEST_CASE("Stages of equal sizes keep their boundaries", "[loop][draft_search]") {
  const Draft draft = shared_card({"pipeline.microbatches=8"});
  const auto found = search_drafts(draft, {{.pipeline = {1, 2, 3, 4},
                                            .chunks = {1},
                                            .schedules = {"1f1b"},
                                            .stage_sizes = {search::StageSizes::Equal}},
                                           4});
  std::set<std::vector<int>> borders;
  for (const DraftPlan& plan : found.plans)
    borders.insert(plan.boundaries);
  // An embedding, six blocks and a head: six blocks cannot be divided among four stages.
  CHECK(borders == std::set<std::vector<int>>{{0, 8}, {0, 4, 8}, {0, 3, 5, 8}});
}

TEST_CASE(
    "Requests that the model, the executor or the costs do not allow are rejected with the allowed "
    "values",
    "[loop][draft_search]") {
  const Draft draft = shared_card({"pipeline.microbatches=8"});
  const auto refusal = [](const Draft& of, search::SearchAxes axes, bool keeps_bits = false) {
    DraftSpace space{std::move(axes), 4};
    space.keeps_bits = keeps_bits;
    return error_of([&] { search_drafts(of, space); });
  };
  CHECK(refusal(draft, {.tensor = {2, 3}}) ==
        "--tensor 3: 4 heads and a vocabulary of 256 cannot be divided into 3 parts: heads must "
        "divide evenly, and no part of the vocabulary be empty; 2 or 4 would do");
  CHECK(refusal(draft, {.expert = {2}}) == "--expert 2: the model gpt has no experts; use 1");
  CHECK(refusal(draft, {.context = {2}}) ==
        "--context 2: the layers of gpt do not partition sequences; use 1");
  CHECK(refusal(draft, {.tensor = {2}}, /*keeps_bits=*/true) ==
        "--tensor 2: training continues with the same bits only with 1");
  Draft measured = draft;
  measured.costs->tensor = 2;
  CHECK(refusal(measured, {.tensor = {4}}) ==
        "--tensor 4: the costs are for layers that 2 ranks partition along tensor: measure "
        "them with `pipewright profile SCENARIO --set pipeline.tensor=4`");
  const Draft mixture{.scenario = plan::scenario_from_json(plan::JsonDocument::read(
                          PIPEWRIGHT_SOURCE_DIR "/scenarios/qwen3-moe-tiny/scenario.json"))};
  CHECK(refusal(mixture, {.expert = {3}}).find("--expert 3: an expert size of 3 does not divide") ==
        0);
  CHECK(refusal(mixture, {.context = {2}})
            .find("--context 2: pipeline.context is supported in prediction only.") == 0);
}

TEST_CASE("A search that is stopped keeps its results so far", "[loop][draft_search]") {
  const Draft draft = shared_card({"pipeline.microbatches=8"});
  const auto stopped = search_drafts(
      draft, {{}, 4},
      {.progress = [](std::size_t done, std::size_t, const DraftPlan*) { return done < 5; }});
  CHECK(stopped.interrupted);
  CHECK(stopped.simulated <= 5);
}

}  // namespace draft_search_test
