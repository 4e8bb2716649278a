// How fast the simulator is, beside the engines that it is compared with. One JSON line a program.

#include "pipewright/sim/simulator.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>

#include "pipewright/plan/lower.hpp"
#include "pipewright/plan/schedule_request.hpp"
#include "pipewright/plan/statistics.hpp"

namespace {

using namespace pipewright;
using Clock = std::chrono::steady_clock;

/// The median of some rounds, in seconds, after one to warm up.
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

sim::StepCosts costs_of(int stages, int ranks) {
  sim::StepCosts costs;
  costs.stages.resize(static_cast<std::size_t>(stages));
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

}  // namespace

int main(int argc, char** argv) {
  plan::ScheduleRequest request;
  request.name = "interleaved-1f1b";
  request.ranks = 64;
  request.microbatches = 1024;
  request.chunks = 4;
  int rounds = 9;
  CLI::App app("Times the simulator");
  app.add_option("--schedule", request.name);
  app.add_option("--ranks", request.ranks);
  app.add_option("--microbatches", request.microbatches);
  app.add_option("--chunks", request.chunks);
  app.add_option("--rounds", rounds);
  CLI11_PARSE(app, argc, argv);

  const plan::Schedule schedule = plan::make_schedule(request);
  std::size_t actions = 0;
  for (const auto& list : schedule.ranks)
    actions += list.size();
  const auto build_start = Clock::now();
  const sim::Structure structure(plan::lower(schedule));
  const double build = std::chrono::duration<double>(Clock::now() - build_start).count();
  sim::StepCosts costs =
      costs_of(plan::stage_count(structure.program()), static_cast<int>(schedule.ranks.size()));
  sim::Simulator simulator(structure);

  double sum = 0;  // keeps the work from being dropped
  const auto alone = [&] {
    costs.stages[0].forward.value *= 1.0001;
    sum += simulator.iteration(costs);
  };
  const double iteration = typical_seconds(rounds, alone);
  const double full = typical_seconds(rounds, [&] { sum += simulator.run(costs).iteration; });
  const auto rate = [&](double seconds) { return static_cast<double>(actions) / seconds / 1e6; };
  fmt::print(
      "{{\"schedule\": \"{}\", \"ranks\": {}, \"microbatches\": {}, \"chunks\": {}, \"actions\": "
      "{}, \"instructions\": {}, \"lower_and_build_s\": {:.4f}, \"iteration_s\": {:.6f}, "
      "\"iteration_million_actions_per_s\": {:.1f}, \"full_s\": {:.6f}, "
      "\"full_million_actions_per_s\": {:.1f}, \"sum\": {:.3f}}}\n",
      request.name, request.ranks, request.microbatches, request.chunks, actions, structure.size(),
      build, iteration, rate(iteration), full, rate(full), sum);
}
