#include "pipewright/sim/calibration/run_simulator.hpp"

#include <algorithm>

#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/schedules/schedule_request.hpp"

namespace pipewright::sim {
namespace {

/// A transfer holds both ends, as Megatron's do.
plan::Program program_of(int ranks, int microbatches, int chunks) {
  const plan::ScheduleRequest request{.name = chunks > 1 ? "interleaved-1f1b" : "1f1b",
                                      .ranks = ranks,
                                      .microbatches = microbatches,
                                      .chunks = chunks,
                                      .rank_of_stage = {},
                                      .costs = {},
                                      .memory_units = {}};
  return plan::lower(plan::make_schedule(request), {.blocking = true});
}

double bandwidth(plan::Bytes size, double seconds) {
  return static_cast<double>(size.value) / std::max(seconds, 1e-15);
}

}  // namespace

struct RunSimulator::Pipeline {
  Pipeline(int ranks, int microbatches, int chunks)
      : structure(program_of(ranks, microbatches, chunks)), simulator(structure) {
    costs.stages.resize(static_cast<std::size_t>(ranks * chunks));
  }
  Structure structure;
  Simulator simulator;
  StepCosts costs;
};

RunSimulator::RunSimulator(const plan::Cluster& cluster) : cluster_(cluster) {}
RunSimulator::~RunSimulator() = default;

RunSimulator::Pipeline& RunSimulator::pipeline_of(const plan::TrainingRun& run) {
  auto& pipeline = pipelines_[{run.pipeline, run.microbatches(), run.chunks}];
  if (!pipeline)
    pipeline = std::make_unique<Pipeline>(run.pipeline, run.microbatches(), run.chunks);
  return *pipeline;
}

namespace {

/// Adds a part of the model to a stage.
void add(plan::StageCost& stage, const plan::PassSeconds& part, double times = 1) {
  stage.forward += plan::Seconds{part.forward * times};
  stage.input_gradient += plan::Seconds{part.backward * times / 2};
  stage.weight_gradient += plan::Seconds{part.backward * times / 2};
}

void set_stages(std::vector<plan::StageCost>& stages, const plan::TrainingRun& run,
                const plan::TransformerTimes& times, double iteration_s, plan::Bytes hop) {
  const std::size_t last = stages.size() - 1;
  const int layers = run.layers / static_cast<int>(stages.size());
  for (std::size_t at = 0; at <= last; ++at) {
    plan::StageCost& stage = stages[at];
    stage.forward = stage.input_gradient = stage.weight_gradient = {};
    stage.output = stage.input_gradient_bytes = hop;
    const int dense = std::clamp(run.dense_layers - static_cast<int>(at) * layers, 0, layers);
    add(stage, times.layer, layers - dense);
    add(stage, times.dense_layer, dense);
    if (at == 0)
      add(stage, times.embedding);
    if (at == last)
      add(stage, times.head);
    const double end = last == 0    ? times.only_end_s
                       : at == 0    ? times.first_end_s
                       : at == last ? times.last_end_s
                                    : times.middle_end_s;
    const bool of_rank = at < static_cast<std::size_t>(run.pipeline);  // once for each rank
    stage.optimizer_step = plan::Seconds{end + (of_rank ? iteration_s : 0)};
  }
}

}  // namespace

double RunSimulator::iteration(const plan::TrainingRun& run, const plan::TransformerWork& work,
                               const plan::MachineConstants& constants,
                               const plan::LayerFactors& factors) {
  Pipeline& pipeline = pipeline_of(run);
  const plan::TransformerTimes times = plan::transformer_times(work, constants, factors);
  set_stages(pipeline.costs.stages, run, times, constants.iteration_s, work.hop_size);
  // A rank is all devices of a stage.
  plan::Cluster& cluster = pipeline.costs.cluster;
  const int of_stage = run.tensor * run.data * run.context;
  cluster.devices_per_node = std::max(1, cluster_.devices_per_node / of_stage);
  cluster.nodes = (run.pipeline - 1) / cluster.devices_per_node + 1;
  cluster.within_node.bandwidth_per_s = bandwidth(work.hop_size, times.hop_s);
  cluster.between_nodes.bandwidth_per_s = bandwidth(work.hop_size, times.network_hop_s);
  return pipeline.simulator.iteration(pipeline.costs);
}

}  // namespace pipewright::sim
