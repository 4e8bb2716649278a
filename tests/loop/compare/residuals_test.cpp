#include "pipewright/loop/compare/residuals.hpp"

#include <limits>
#include <random>

#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/sim/causes/measured_times.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "search/support/drafts.hpp"
#include "support/make_schedule.hpp"

namespace residuals_test {

using namespace pipewright;
using loop::ResidualCause;
using loop::Residuals;
using loop::residuals_of;
using Kind = ResidualCause::Kind;

constexpr int ranks = 4;

/// Returns costs of stages with equal passes, and of transfers whose time is proportional to their
/// size.
sim::StepCosts even_costs(int stages, double transfer) {
  sim::StepCosts costs;
  plan::StageCost stage;
  stage.forward = stage.input_gradient = stage.weight_gradient = {1e-3};
  stage.output = stage.input_gradient_bytes = {1000};
  costs.stages.assign(static_cast<std::size_t>(stages), stage);
  costs.cluster.devices_per_node = ranks;
  costs.cluster.within_node.bandwidth_per_s =
      transfer > 0 ? 1000 / transfer : std::numeric_limits<double>::infinity();
  return costs;
}

/// A disturbance of the run that its prediction does not contain.
struct Injected {
  Kind kind = Kind::Compute;
  int rank = 0;
  int stage = -1;
  int other = -1;
};

bool is_hit(const plan::Dependencies& events, int event, const Injected& injected) {
  const auto& own = events[event];
  switch (injected.kind) {
    case Kind::Compute:
      return plan::is_compute(own.instruction->kind) && own.instruction->stage == injected.stage;
    case Kind::Transfer:
      return plan::is_send(own.instruction->kind) && own.rank == injected.rank &&
             events[own.partner].rank == injected.other;
    case Kind::Launch:
      return plan::is_compute(own.instruction->kind) && own.rank == injected.rank &&
             own.instruction->microbatch >= 0;
    case Kind::Reduction:
    case Kind::Overlap:
      break;
  }
  return false;
}

/// Simulates the Program with this disturbance and a variation of a few percent in all durations.
sim::Times run_with(const sim::Structure& structure, sim::StepCosts costs, const Injected& injected,
                    double factor, std::mt19937& random) {
  std::normal_distribution spread(1.0, 0.02);
  for (int event = 0; event < structure.size(); ++event)
    costs.event_factors.push_back(std::max(0.5, spread(random)) *
                                  (is_hit(structure.events(), event, injected) ? factor : 1));
  sim::Simulator simulator(structure);
  sim::Times times = simulator.run(costs);
  // A late start: the action itself takes the usual time.
  for (int event = 0; event < structure.size(); ++event)
    if (injected.kind == Kind::Launch && is_hit(structure.events(), event, injected)) {
      sim::EventTimes& at = times.events[static_cast<std::size_t>(event)];
      at.start = at.end - (at.end - at.start) / factor;
    }
  return times_of(structure, timeline_of(structure, times));
}

Injected draw_trouble(const sim::Structure& structure, Kind kind, std::mt19937& random) {
  const plan::Placement& placement = structure.program().placement;
  const int stage = std::uniform_int_distribution(0, placement.stage_count() - 1)(random);
  const int rank = placement.rank_of(stage, 0);
  if (kind == Kind::Compute)
    return {kind, rank, stage, -1};
  if (kind == Kind::Launch)
    return {kind, rank, -1, -1};
  for (;;) {  // any transfer of the Program
    const int event = std::uniform_int_distribution(0, structure.size() - 1)(random);
    const auto& own = structure.events()[event];
    if (plan::is_send(own.instruction->kind))
      return {kind, own.rank, -1, structure.events()[own.partner].rank};
  }
}

bool names(const ResidualCause& cause, const Injected& injected) {
  return cause.kind == injected.kind && cause.rank == injected.rank &&
         cause.stage == injected.stage && cause.other == injected.other;
}

void require_sums(const Residuals& found) {
  for (const loop::RankResidual& rank : found.ranks)
    REQUIRE(rank.sum() == Approx(found.difference()).margin(1e-12));
  double sum = 0;
  for (const ResidualCause& cause : found.causes) {
    REQUIRE((cause.kind != Kind::Overlap || cause.seconds < 0));
    sum += cause.seconds;
  }
  REQUIRE(sum == Approx(found.difference()).margin(1e-6 * found.measured_s));
}

TEST_CASE("The disturbance of a run is the first of the causes", "[loop][residuals]") {
  for (const std::string name : {"1f1b", "gpipe", "zbv", "interleaved-1f1b"})
    for (const Kind kind : {Kind::Compute, Kind::Transfer, Kind::Launch}) {
      std::mt19937 random(17);
      const sim::Structure structure(plan::lower(test::make(name, ranks, 16)));
      const auto costs = even_costs(plan::stage_count(structure.program()), 0.1e-3);
      sim::Simulator simulator(structure);
      const sim::Times predicted = simulator.run(costs);
      int runs = 0, hits = 0;
      for (int seed = 0; seed < 100; ++seed) {
        const Injected injected = draw_trouble(structure, kind, random);
        const double factor = kind == Kind::Transfer ? 20 : 1.4;
        const auto measured = run_with(structure, costs, injected, factor, random);
        const Residuals found = residuals_of(structure, predicted, measured);
        require_sums(found);
        ++runs;
        hits += !found.causes.empty() && names(found.causes.front(), injected) ? 1 : 0;
      }
      CAPTURE(name, static_cast<int>(kind), hits, runs);
      CHECK(hits >= 0.95 * runs);
    }
}

TEST_CASE("A run as predicted has no causes", "[loop][residuals]") {
  const sim::Structure structure(plan::lower(test::make("1f1b", ranks, 8)));
  sim::Simulator simulator(structure);
  const sim::Times times = simulator.run(even_costs(ranks, 0.1e-3));
  const Residuals found = residuals_of(structure, times, times);
  CHECK(found.causes.empty());
  for (const loop::RankResidual& rank : found.ranks) {
    CHECK(rank.compute_s == 0);
    CHECK(rank.transfer_s == 0);
    CHECK(rank.waiting_s == 0);
    CHECK(rank.launch_s == 0);
  }
}

TEST_CASE("A slow stage is compute on its rank and waiting on the others", "[loop][residuals]") {
  const sim::Structure structure(plan::lower(test::make("1f1b", ranks, 8)));
  auto costs = even_costs(ranks, 0);
  sim::Simulator simulator(structure);
  const sim::Times predicted = simulator.run(costs);
  costs.stages[2].forward.value += 0.5e-3;
  const Residuals found = residuals_of(structure, predicted, simulator.run(costs));
  CHECK(found.ranks[2].compute_s == Approx(8 * 0.5e-3));
  CHECK(found.ranks[0].compute_s == Approx(0).margin(1e-12));
  CHECK(found.ranks[0].waiting_s == Approx(found.difference()));
  // One of the eight forwards is not on the critical path.
  REQUIRE(found.causes.size() == 1);
  CHECK(found.causes.front().seconds == Approx(found.difference()));
  CHECK(found.causes.front().text == "stage 2 on rank 2 computes 3.500 ms more than predicted");
}

TEST_CASE("Residuals of timelines include their memory peaks", "[loop][residuals]") {
  const sim::Structure structure(plan::lower(test::make("1f1b", 2, 2)));
  sim::Simulator simulator(structure);
  plan::Timeline predicted = timeline_of(structure, simulator.run(even_costs(2, 0)));
  predicted.memory = {{0, {0}, {100}}, {1, {0}, {70}}};
  plan::Timeline measured = predicted;
  measured.memory = {{0, {0}, {90}}, {0, {1e-3}, {130}}, {1, {0}, {60}}};
  const Residuals found = residuals_of(structure, predicted, measured);
  CHECK(found.ranks[0].memory.value == 30);
  CHECK(found.ranks[1].memory.value == -10);
  measured.memory.resize(2);  // the memory of rank 1 has no samples
  CHECK(residuals_of(structure, predicted, measured).ranks[1].memory.value == 0);
  measured.memory.clear();
  CHECK(residuals_of(structure, predicted, measured).ranks[0].memory.value == 0);
}

}  // namespace residuals_test
