#include "pipewright/sim/calibration/run_simulator.hpp"

#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/plan/schedules/schedule_request.hpp"
#include "pipewright/sim/calibration/run_costs.hpp"

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

}  // namespace

struct RunSimulator::Pipeline {
  Pipeline(int ranks, int microbatches, int chunks)
      : structure(program_of(ranks, microbatches, chunks)), simulator(structure) {}
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

double RunSimulator::iteration(const plan::TrainingRun& run, const plan::TransformerWork& work,
                               const plan::MachineConstants& constants,
                               const plan::LayerFactors& factors) {
  Pipeline& pipeline = pipeline_of(run);
  set_run_costs(pipeline.costs, cluster_, run, work, constants, factors);
  return pipeline.simulator.iteration(pipeline.costs);
}

}  // namespace pipewright::sim
