// Measures how long it takes to sample a job's iteration many times: durations come from a
// synthetic record, and every rank has its own factors. Prints one JSON line.

#include "pipewright/sim/draws/draws.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <random>
#include <thread>

#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/statistics.hpp"

namespace {

using namespace pipewright;
using Clock = std::chrono::steady_clock;

sim::StepCosts costs_of(const plan::Program& program, int replicas) {
  sim::StepCosts costs;
  costs.stages.resize(static_cast<std::size_t>(plan::stage_count(program)));
  for (plan::StageCost& stage : costs.stages) {
    stage.forward = stage.input_gradient = stage.weight_gradient = {1e-3};
    stage.output = stage.input_gradient_bytes = {1'000'000};
    stage.gradients = {100'000'000};
    stage.optimizer_step = {1e-3};
  }
  costs.replicas = replicas;
  costs.cluster.devices_per_node = 8;
  costs.cluster.nodes = (static_cast<int>(program.ranks.size()) * replicas + 7) / 8;
  costs.cluster.within_node = {.latency = {5e-6}, .bandwidth_per_s = 200e9};
  costs.cluster.between_nodes = {.latency = {1e-5}, .bandwidth_per_s = 25e9};
  return costs;
}

/// Records `steps` steps in which compute and transfers are independent and log-normal with a sigma
/// of 5 %.
models::RecordedSteps record_of(const plan::Program& program, int replicas, int steps) {
  std::mt19937 random(1);
  std::lognormal_distribution<double> seconds(-7, 0.05);
  models::RecordedSteps record;
  for (int step = 0; step < steps; ++step)
    record.numbers.push_back(step);
  for (int replica = 0; replica < replicas; ++replica)
    for (int rank = 0; rank < static_cast<int>(program.ranks.size()); ++rank)
      for (const plan::Instruction& i : program.ranks[static_cast<std::size_t>(rank)]) {
        if (plan::is_receive(i.kind))
          continue;
        models::RecordedOperation operation{.replica = replica, .rank = rank, .instruction = i};
        for (int step = 0; step < steps; ++step)
          operation.seconds.push_back(seconds(random));
        record.operations.push_back(std::move(operation));
      }
  return record;
}

}  // namespace

int main(int argc, char** argv) {
  plan::ScheduleRequest request;
  request.name = "1f1b";
  request.ranks = 8;
  request.microbatches = 32;
  int replicas = 64, recorded = 2, steps = 64, draws = 10'000, rounds = 3;
  CLI::App app("Times sampled iterations of a job");
  app.add_option("--schedule", request.name);
  app.add_option("--ranks", request.ranks);
  app.add_option("--microbatches", request.microbatches);
  app.add_option("--chunks", request.chunks);
  app.add_option("--replicas", replicas);
  app.add_option("--recorded", recorded, "pipelines in the record");
  app.add_option("--steps", steps, "steps in the record");
  app.add_option("--draws", draws);
  app.add_option("--rounds", rounds);
  CLI11_PARSE(app, argc, argv);

  const sim::Structure structure(plan::lower(plan::make_schedule(request), {.replicas = replicas}));
  const sim::StepCosts costs = costs_of(structure.program(), replicas);
  const sim::Jitter jitter(record_of(structure.program(), recorded, steps));
  std::vector<double> seconds;
  double p95 = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    p95 = sim::draw_iterations(structure, costs, jitter, {.count = draws}).percentile(0.95);
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  const double typical = plan::median(seconds);
  const double instructions = 1.0 * structure.size() * replicas * draws;
  fmt::print(
      "{{\"program\": \"pipewright\", \"schedule\": \"{}\", \"ranks\": {}, \"microbatches\": {}, "
      "\"replicas\": {}, \"instructions\": {}, \"recorded_pipelines\": {}, \"recorded_steps\": {}, "
      "\"draws\": {}, \"cores\": {}, \"draws_s\": {:.4f}, \"billion_instructions_per_s\": {:.3f}, "
      "\"p95_s\": {:.9f}}}\n",
      request.name, request.ranks, request.microbatches, replicas, structure.size() * replicas,
      recorded, steps, draws, std::thread::hardware_concurrency(), typical,
      instructions / typical / 1e9, p95);
}
