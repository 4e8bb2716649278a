// Measures how long it takes to simulate a job with every device separately, starting from the
// schedule. The job has a pipeline, its replicas and their tensor-parallel ranks, and every
// instruction has an independently sampled duration. Prints one JSON line.

#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>

#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/sim/engine/job_simulator.hpp"

namespace {

using namespace pipewright;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

sim::StepCosts costs_of(const plan::Program& program, int replicas, int shards, double jitter) {
  sim::StepCosts costs;
  costs.stages.resize(static_cast<std::size_t>(plan::stage_count(program)));
  for (plan::StageCost& stage : costs.stages) {
    stage.forward = stage.input_gradient = stage.weight_gradient = {1e-3};
    stage.rerun.first = {1e-3};
    stage.output = stage.input_gradient_bytes = {1'000'000};
    stage.gradients = stage.parameters = {100'000'000};
    stage.optimizer_step = {1e-3};
  }
  costs.replicas = replicas;
  costs.shards = shards;
  costs.jitter = jitter;
  costs.cluster.devices_per_node = 8;
  costs.cluster.nodes = (static_cast<int>(program.ranks.size()) * costs.members() + 7) / 8;
  costs.cluster.within_node = {.latency = {5e-6}, .bandwidth_per_s = 200e9};
  costs.cluster.between_nodes = {.latency = {1e-5}, .bandwidth_per_s = 25e9};
  costs.cluster.fabric = {
      .levels = {
          {"spine", 32, {.latency = {2e-5}, .bandwidth_per_s = 25e9, .oversubscription = 7}}}};
  return costs;
}

/// Returns the peak memory of the process, in GB.
double peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024e-9 * static_cast<double>(usage.ru_maxrss);
}

}  // namespace

int main(int argc, char** argv) {
  plan::ScheduleRequest request;
  request.name = "interleaved-1f1b";
  request.ranks = 16;
  request.microbatches = 16;
  request.chunks = 8;
  int replicas = 128, shards = 8;
  double jitter = 0.05;
  CLI::App app("Times the simulation of a job with every device separately");
  app.add_option("--schedule", request.name);
  app.add_option("--ranks", request.ranks, "of a pipeline");
  app.add_option("--microbatches", request.microbatches, "of a pipeline");
  app.add_option("--chunks", request.chunks);
  app.add_option("--replicas", replicas, "data-parallel replicas of the pipeline");
  app.add_option("--shards", shards, "tensor-parallel ranks of each layer");
  app.add_option("--jitter", jitter, "standard deviation of durations divided by their mean");
  CLI11_PARSE(app, argc, argv);

  const auto start = Clock::now();
  const sim::Structure structure(
      plan::lower(plan::make_schedule(request), {.replicas = replicas,
                                                 .recompute = plan::RecomputeMode::Full,
                                                 .zero = 1,
                                                 .gradient_norm = true,
                                                 .share_loss = true}));
  const sim::StepCosts costs = costs_of(structure.program(), replicas, shards, jitter);
  const double structure_s = seconds_since(start);
  sim::JobSimulator simulator(structure);
  const double iteration = simulator.run(costs).iteration();
  const double first_s = seconds_since(start);
  const auto again = Clock::now();
  const bool same = simulator.run(costs).iteration() == iteration;
  fmt::print(
      "{{\"program\": \"pipewright\", \"schedule\": \"{}\", \"ranks\": {}, \"microbatches\": {}, "
      "\"chunks\": {}, \"replicas\": {}, \"shards\": {}, \"devices\": {}, \"instructions\": {}, "
      "\"jitter\": {}, \"structure_s\": {:.4f}, \"all_s\": {:.4f}, \"again_s\": {:.4f}, "
      "\"peak_gb\": {:.3f}, \"same\": {}, \"iteration_s\": {:.9f}}}\n",
      request.name, request.ranks, request.microbatches, request.chunks, replicas, shards,
      request.ranks * costs.members(), std::int64_t{structure.size()} * costs.members(), jitter,
      structure_s, first_s, seconds_since(again), peak_memory(), same, iteration);
}
