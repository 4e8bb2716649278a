// Tests the rehearsals between the steps of a training.

#include "pipewright/loop_torch/dress_rehearsal.hpp"

#include "loop/torch/support/verified_plans.hpp"
#include "pipewright/loop_torch/error_parts.hpp"
#include "pipewright/sim/engine/simulator.hpp"

namespace dress_rehearsal_test {

using namespace pipewright;
using test::odd_costs;
using test::odd_scenario;

TEST_CASE("Measured events take their measured time, others their previous time",
          "[loop][rehearsal]") {
  plan::Scenario scenario = odd_scenario();
  scenario.pipeline.microbatches = 2;
  plan::LayerCosts layers = odd_costs();
  for (const bool contended : {false, true}) {
    layers.busy_cores = contended ? 2 : 1;
    for (plan::LayerCost& layer : layers.layers)
      layer.contended = {{2e-3}, {2e-3}, {2e-3}, {}, {1e-4}};
    const loop::Plan plan = loop::make_plan(scenario, layers);
    const auto& structure = *plan.structure;
    std::vector<double> seconds(static_cast<std::size_t>(structure.size()));
    for (int event = 0; event < structure.size(); ++event)
      if (structure.events()[event].instruction->kind == plan::InstructionKind::Forward)
        seconds[static_cast<std::size_t>(event)] = 0.5 + event;
    sim::StepCosts costs = loop::with_measured(structure, plan.costs, seconds);
    if (contended)
      costs.stages = costs.contended;  // as if all ranks were busy all the time
    sim::Simulator simulator(structure), plain(structure);
    const sim::Times& times = simulator.run(costs);
    sim::StepCosts before = plan.costs;
    before.stages = costs.stages;
    const sim::Times& usual = plain.run(before);
    for (int event = 0; event < structure.size(); ++event) {
      const double wanted = seconds[static_cast<std::size_t>(event)];
      const double took = times[event].end - times[event].start;
      if (wanted > 0)
        CHECK(took == Approx(wanted).epsilon(1e-9));
      else if (plan::is_compute(structure.events()[event].instruction->kind))
        CHECK(took == Approx(usual[event].end - usual[event].start).epsilon(1e-6).margin(1e-12));
    }
  }
}

TEST_CASE("A rehearsal times every action of every schedule it supports, and all layers",
          "[loop][rehearsal]") {
  using Mode = plan::RecomputeMode;
  const std::vector<std::pair<std::string, Mode>> cases{
      {"gpipe", Mode::None},     {"1f1b", Mode::None},         {"zb-h1", Mode::None},
      {"dualpipev", Mode::None}, {"1f1b", Mode::Full},         {"interleaved-1f1b", Mode::None},
      {"zb-h1", Mode::Full},     {"1f1b", Mode::Selective},    {"zb-h1", Mode::Selective},
      {"pipedream", Mode::None}, {"pipedream-2bw", Mode::None}};
  for (const auto& [schedule, recompute] : cases) {
    INFO(schedule << ", recompute " << plan::to_string(recompute));
    plan::Scenario scenario = odd_scenario();
    scenario.pipeline.schedule = schedule;
    scenario.training.recompute = recompute;
    if (!test::choose_microbatches(scenario))
      continue;
    const loop::Workload workload(scenario);
    const loop::Plan plan = loop::make_plan(scenario, odd_costs());
    REQUIRE(loop::can_rehearse(plan.program(), workload));
    loop::Membership alone;
    loop::DressRehearsal rehearsal(scenario, plan, workload, alone);
    for (int i = 0; i < 2; ++i)
      rehearsal.play();
    CHECK(rehearsal.played() == 2);
    const loop::Rehearsed rehearsed = rehearsal.rehearsed();
    auto costs = costs_of(rehearsed, scenario, plan, odd_costs());
    costs.reads_on_rank = recompute != Mode::None;
    CHECK(costs.busy_cores == 2);
    CHECK(costs.measured_over.value > 0);
    for (const plan::LayerCost& layer : costs.layers) {
      CHECK(layer.contended.forward.value > 0);
      CHECK(layer.forward != plan::Seconds{1e-3});  // the planned value
      CHECK(plan::compute_time(layer) > layer.forward);
    }
    const auto steps = step_costs_of(rehearsed, scenario, plan, costs);
    REQUIRE(steps.size() == 2);
    for (const sim::StepCosts& step : steps)
      for (int event = 0; event < plan.structure->size(); ++event) {
        const plan::InstructionKind kind = plan.structure->events()[event].instruction->kind;
        const bool waits = !costs.reads_on_rank && kind == plan::InstructionKind::Load;
        if (plan::is_compute(kind))
          CHECK((step.event_factors[static_cast<std::size_t>(event)] != 1) != waits);
      }
  }
}

TEST_CASE("Data-parallel replicas are rehearsed with durations of their own", "[loop][rehearsal]") {
  plan::Scenario scenario = odd_scenario();
  scenario.pipeline.replicas = 2;
  const loop::Workload workload(scenario);
  const loop::Plan plan = loop::make_plan(scenario, odd_costs());
  loop::Membership alone;
  loop::DressRehearsal rehearsal(scenario, plan, workload, alone);
  rehearsal.play();
  const loop::Rehearsed rehearsed = rehearsal.rehearsed();
  const auto steps =
      step_costs_of(rehearsed, scenario, plan, costs_of(rehearsed, scenario, plan, odd_costs()));
  REQUIRE(steps.size() == 1);
  const auto& factors = steps.front().event_factors;
  const auto size = static_cast<std::size_t>(plan.structure->size());
  REQUIRE(factors.size() == 2 * size);
  int unlike = 0;
  for (std::size_t event = 0; event < size; ++event)
    if (plan.structure->events()[static_cast<int>(event)].instruction->kind ==
        plan::InstructionKind::Forward)
      unlike += factors[event] != factors[size + event] ? 1 : 0;
  CHECK(unlike > 0);
  CHECK(predict(scenario, plan, odd_costs(), rehearsed).figures.iteration > plan::Seconds{});
}

TEST_CASE("Rehearsed tensor-parallel ranks communicate, and the prediction includes the time",
          "[loop][rehearsal]") {
  for (const auto& [tensor, groups, cuts_tokens] :
       {std::tuple(2, 0, false), std::tuple(2, 4, true), std::tuple(4, 4, false),
        std::tuple(4, 0, true)}) {
    CAPTURE(tensor, groups, cuts_tokens);
    plan::Scenario scenario = odd_scenario(cuts_tokens ? 8 : 7);
    scenario.pipeline.schedule = "zb-h1";
    scenario.pipeline.microbatches = 3;
    scenario.pipeline.tensor = tensor;
    scenario.pipeline.sequence_parallel = cuts_tokens;
    scenario.training.tensor_groups = groups;
    const loop::Workload workload(scenario);
    const std::atomic<bool> never{false};
    const plan::LayerCosts costs = loop::measure_costs(scenario, workload, {}, never, {});
    CHECK(costs.tensor == tensor);
    const loop::Plan plan = loop::make_plan(scenario, costs);
    REQUIRE(loop::can_rehearse(plan.program(), workload));
    loop::Membership alone;
    loop::DressRehearsal rehearsal(scenario, plan, workload, alone);
    for (int i = 0; i < 2; ++i)
      rehearsal.play();
    const loop::Rehearsed rehearsed = rehearsal.rehearsed();
    REQUIRE(rehearsed.ranks.size() == static_cast<std::size_t>(2 * tensor));
    // The backward of a stage whose input has no gradient may be in either half. With sequence
    // parallelism, gradients of parameters that each rank applies to its own tokens are also
    // all-reduced.
    const auto check = [cuts = cuts_tokens](const std::string& action, double among) {
      CAPTURE(action);
      const std::string kind = plan::kind_of(action);
      if (cuts && kind == "W")
        return;
      if (action.front() != '0' || (kind != "I" && kind != "W"))
        CHECK((among > 0) == (kind == "F" || kind == "I"));
    };
    const exec::JobGrid grid = loop::grid_of(scenario.pipeline);
    for (int rank = 0; rank < grid.size(); ++rank) {
      const auto& script = plan.program().ranks[static_cast<std::size_t>(grid.rank(rank).rank)];
      const loop::RehearsedRank& played = rehearsed.ranks[static_cast<std::size_t>(rank)];
      REQUIRE(played.shards.size() == 2);
      for (std::size_t i = 0; i < script.size(); ++i) {
        const double among = played.shards[1][i];
        check(to_string(script[i]), among);
        CHECK(among <= played.plays[1][i]);
      }
    }
    const auto found = loop::predict(scenario, plan, costs, rehearsed);
    CHECK(found.costs.tensor == tensor);
    for (const plan::Span& span : found.timeline.spans)
      check(span.action, span.shards.value);
    for (const plan::Seconds seconds : found.figures.shards)
      CHECK(seconds > plan::Seconds{});
  }
}

TEST_CASE("Ranks with a node to themselves have the costs measured while all ranks computed",
          "[loop][rehearsal]") {
  plan::Scenario scenario = odd_scenario();
  scenario.pipeline.microbatches = 2;
  const loop::Plan plan = loop::make_plan(scenario, odd_costs());
  // Each kind and layer took 1 s alone, and 2 s while the other rank computed.
  loop::Rehearsed rehearsed;
  for (const auto& script : plan.program().ranks) {
    loop::RehearsedRank rank{{std::vector<double>(script.size(), 1.0)}, {}, {}};
    for (std::size_t layer = 0; layer <= odd_costs().layers.size(); ++layer) {
      profiler::LayerSamples samples;
      for (const auto kind : profiler::sample_kinds)
        (samples.*kind).push_back(1);
      rank.alone.push_back(samples);
      for (const auto kind : profiler::sample_kinds)
        (samples.*kind).back() = 2;
      rank.beside.push_back(samples);
    }
    rehearsed.ranks.push_back(rank);
  }
  scenario.cluster.devices_per_node = 2;
  const auto together = costs_of(rehearsed, scenario, plan, odd_costs());
  CHECK(together.busy_cores == 2);
  CHECK(together.layers[1].forward == plan::Seconds{1});
  CHECK(together.layers[1].contended.forward == plan::Seconds{2});
  scenario.cluster.devices_per_node = 1;
  CHECK(costs_of(rehearsed, scenario, plan, odd_costs()) == together);  // on the one node
  scenario.cluster.nodes = 2;
  const auto apart = costs_of(rehearsed, scenario, plan, odd_costs());
  CHECK(apart.busy_cores == 1);
  CHECK(apart.layers[1].forward == plan::Seconds{2});
  CHECK(apart.layers[1].contended == plan::LayerTimes{});
}

TEST_CASE("Every training on CPUs can be rehearsed", "[loop][rehearsal]") {
  plan::Scenario scenario = odd_scenario();
  scenario.pipeline.microbatches = 4;
  const auto possible = [](const plan::Scenario& wanted) {
    const loop::Workload workload(wanted);
    return loop::can_rehearse(loop::make_plan(wanted, odd_costs()).program(), workload);
  };
  CHECK(possible(scenario));
  plan::Scenario other = scenario;
  other.training.precision = plan::Precision::Mixed;
  CHECK(possible(other));
  other = scenario;
  for (const auto mode : {plan::RecomputeMode::Full, plan::RecomputeMode::Selective}) {
    other.training.recompute = mode;
    CHECK(possible(other));
  }
  other = scenario;
  other.pipeline.schedule = "pipedream";
  CHECK(possible(other));
}

}  // namespace dress_rehearsal_test
