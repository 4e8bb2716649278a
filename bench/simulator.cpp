// Measures the speed of the simulator, for comparison with other engines. Prints one JSON line per
// Program.

#include "pipewright/sim/engine/simulator.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <random>

#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/statistics.hpp"
#include "pipewright/sim/causes/idle.hpp"
#include "pipewright/sim/memory/memory.hpp"
#include "pipewright/sim/network/shared_links.hpp"
#include "pipewright/sim/simgrid/simgrid.hpp"

namespace {

using namespace pipewright;
using Clock = std::chrono::steady_clock;

/// Returns the median of some rounds in seconds, after one warm-up round.
template <class Work>
double typical_seconds(int rounds, const Work& work) {
  work();
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    work();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  return plan::median(std::move(seconds));
}

sim::StepCosts costs_of(const plan::Schedule& schedule) {
  sim::StepCosts costs;
  const auto ranks = static_cast<int>(schedule.ranks.size());
  costs.stages.resize(static_cast<std::size_t>(plan::stage_count(schedule)));
  for (std::size_t s = 0; s < costs.stages.size(); ++s) {
    plan::StageCost& stage = costs.stages[s];
    stage.forward = {1e-3 * (1 + 0.01 * static_cast<double>(s % 7))};
    stage.input_gradient = stage.weight_gradient = stage.forward;
    stage.output = stage.input_gradient_bytes = {1'000'000};
    stage.activation = {10'000'000};
    stage.forward_peak = {12'000'000};
    stage.backward_peak = {5'000'000};
  }
  costs.cluster.nodes = (ranks + 7) / 8;
  costs.cluster.devices_per_node = 8;
  costs.cluster.within_node = {.latency = {5e-6}, .bandwidth_per_s = 200e9};
  costs.cluster.between_nodes = {.latency = {1e-5}, .bandwidth_per_s = 25e9};
  return costs;
}

/// One Program and everything that is timed on it, built once, so that repeated runs allocate
/// nothing.
struct Case {
  explicit Case(const plan::Schedule& schedule)
      : structure(plan::lower(schedule)),
        costs(costs_of(schedule)),
        simulator(structure),
        causes(structure),
        model(structure) {}

  sim::Structure structure;
  sim::StepCosts costs;
  sim::Simulator simulator;
  sim::IdleCauses causes;
  sim::MemoryModel model;
};

/// Times in seconds, with other costs in each round.
struct Rates {
  double iteration;          // only the iteration time
  double run, idle, memory;  // timeline, idle causes, memory curves
  double full;               // these three together
};

Rates rates_of(Case& c, int rounds, double& sum) {
  for (int ask = 0; ask < sim::Structure::asks_before_reduction; ++ask)
    sum += c.simulator.iteration(c.costs);
  const auto change = [&] { c.costs.stages[0].forward.value *= 1.0001; };
  const auto iteration = [&] {
    change();
    sum += c.simulator.iteration(c.costs);
  };
  const sim::Times* times = nullptr;
  const auto run = [&] {
    change();
    times = &c.simulator.run(c.costs);
    sum += times->iteration;
  };
  const auto idle = [&] { sum += c.causes.of(*times).of_rank(0); };
  const auto memory = [&] { sum += c.model.curves(c.costs, *times).peaks[0].time; };
  const auto full = [&] {
    run();
    idle();
    memory();
  };
  // In this order, because the steps after `run` read its result.
  return {.iteration = typical_seconds(rounds, iteration),
          .run = typical_seconds(rounds, run),
          .idle = typical_seconds(rounds, idle),
          .memory = typical_seconds(rounds, memory),
          .full = typical_seconds(rounds, full)};
}

/// Returns the seconds for `vectors` iteration times, with other costs of every stage each time.
double time_cost_vectors(Case& c, int vectors, int rounds, double& sum) {
  const std::vector<plan::StageCost> first = c.costs.stages;
  const double seconds = typical_seconds(rounds, [&] {
    std::minstd_rand random(1);
    for (int vector = 0; vector < vectors; ++vector) {
      for (std::size_t s = 0; s < first.size(); ++s) {
        const double factor = 1 + 1e-10 * static_cast<double>(random());
        c.costs.stages[s].forward = first[s].forward * factor;
        c.costs.stages[s].input_gradient = first[s].input_gradient * factor;
      }
      sum += c.simulator.iteration(c.costs);
    }
  });
  c.costs.stages = first;
  return seconds;
}

sim::StepCosts behind_one_card(sim::StepCosts costs, int ranks, int pipelines) {
  costs.replicas = pipelines;
  costs.cluster.nodes = ranks;
  costs.cluster.devices_per_node = pipelines;
  costs.cluster.between_nodes.shared = true;
  // One pipeline alone would keep its network card busy for a tenth of the time.
  for (plan::StageCost& stage : costs.stages)
    stage.output = stage.input_gradient_bytes = {1'000'000};
  costs.cluster.between_nodes.bandwidth_per_s = 1e6 / (0.1 * costs.stages.front().forward.value);
  return costs;
}

}  // namespace

int main(int argc, char** argv) {
  plan::ScheduleRequest request;
  request.name = "interleaved-1f1b";
  request.ranks = 64;
  request.microbatches = 1024;
  request.chunks = 4;
  int rounds = 9, vectors = 0, pipelines = 0;
  bool with_simgrid = false;
  CLI::App app("Times the simulator");
  app.add_option("--schedule", request.name);
  app.add_option("--ranks", request.ranks);
  app.add_option("--microbatches", request.microbatches);
  app.add_option("--chunks", request.chunks);
  app.add_option("--rounds", rounds);
  app.add_option("--vectors", vectors, "also times the Program with this many different costs");
  app.add_option("--pipelines", pipelines,
                 "also times this many pipelines whose ranks share network cards");
  app.add_flag("--simgrid", with_simgrid, "also times the second engine");
  CLI11_PARSE(app, argc, argv);

  const plan::Schedule schedule = plan::make_schedule(request);
  std::size_t actions = 0;
  for (const auto& list : schedule.ranks)
    actions += list.size();
  // The time from a schedule to one iteration time, as for a configuration that was never
  // simulated.
  double sum = 0;  // keeps the compiler from dropping the work
  const sim::StepCosts costs = costs_of(schedule);
  const double new_configuration = typical_seconds(std::min(rounds, 3), [&] {
    const sim::Structure structure(plan::lower(schedule));
    sum += sim::Simulator(structure).iteration(costs);
  });

  Case c(schedule);
  const Rates seconds = rates_of(c, rounds, sum);
  const auto rate = [&](double s) { return static_cast<double>(actions) / s / 1e6; };
  fmt::print(
      "{{\"program\": \"pipewright\", \"schedule\": \"{}\", \"ranks\": {}, \"microbatches\": {}, "
      "\"chunks\": {}, \"actions\": {}, \"instructions\": {}, \"new_configuration_s\": {:.6f}, "
      "\"iteration_s\": {:.9f}, \"run_s\": {:.9f}, \"idle_s\": {:.9f}, \"memory_s\": {:.9f}, "
      "\"full_s\": {:.9f}, \"iteration_million_actions_per_s\": {:.1f}, "
      "\"full_million_actions_per_s\": {:.1f}",
      request.name, request.ranks, request.microbatches, request.chunks, actions,
      c.structure.size(), new_configuration, seconds.iteration, seconds.run, seconds.idle,
      seconds.memory, seconds.full, rate(seconds.iteration), rate(seconds.full));
  if (vectors > 0)
    fmt::print(", \"cost_vectors\": {}, \"cost_vectors_s\": {:.4f}", vectors,
               time_cost_vectors(c, vectors, std::min(rounds, 5), sum));
  if (with_simgrid && sim::built_with_simgrid()) {
    const double simgrid = typical_seconds(std::min(rounds, 3), [&] {
      sum += sim::simulate_on_simgrid(c.structure, c.costs).iteration;
    });
    fmt::print(", \"simgrid_s\": {:.6f}, \"simgrid_million_actions_per_s\": {:.4f}", simgrid,
               rate(simgrid));
  }
  if (pipelines > 0) {
    const sim::StepCosts shared = behind_one_card(c.costs, request.ranks, pipelines);
    const double own = typical_seconds(std::min(rounds, 3), [&] {
      sum += sim::simulate_shared_links(c.structure, shared).iteration;
    });
    fmt::print(", \"pipelines\": {}, \"shared_links_s\": {:.6f}", pipelines, own);
    if (with_simgrid && sim::built_with_simgrid())
      fmt::print(", \"simgrid_shared_links_s\": {:.6f}", typical_seconds(std::min(rounds, 3), [&] {
                   sum += sim::simulate_on_simgrid(c.structure, shared).iteration;
                 }));
  }
  fmt::print(", \"sum\": {:.3f}}}\n", sum);
}
