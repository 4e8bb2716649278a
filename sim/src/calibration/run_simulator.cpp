#include "pipewright/sim/calibration/run_simulator.hpp"

#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/sim/calibration/run_costs.hpp"

namespace pipewright::sim {

using plan::TrainingRun;

namespace {

/// A transfer holds both ends, as Megatron's do.
plan::Program program_of(const TrainingRun& run) {
  const plan::ScheduleRequest request{.name = std::string(run.schedule_name()),
                                      .ranks = run.pipeline,
                                      .microbatches = run.microbatches(),
                                      .chunks = run.chunks,
                                      .rank_of_stage = {},
                                      .costs = {},
                                      .memory_units = {}};
  return plan::lower(plan::make_schedule(request), {.blocking = true});
}

}  // namespace

struct RunSimulator::Pipeline {
  explicit Pipeline(const TrainingRun& run) : structure(program_of(run)), simulator(structure) {}
  Structure structure;
  Simulator simulator;
  StepCosts costs;
};

RunSimulator::RunSimulator(const plan::Cluster& cluster) : cluster_(cluster) {}
RunSimulator::~RunSimulator() = default;

RunSimulator::Pipeline& RunSimulator::pipeline_of(const TrainingRun& run) {
  auto& pipeline =
      pipelines_[{std::string(run.schedule_name()), run.pipeline, run.microbatches(), run.chunks}];
  if (!pipeline)
    pipeline = std::make_unique<Pipeline>(run);
  return *pipeline;
}

double RunSimulator::iteration(const TrainingRun& run, const plan::TransformerWork& work,
                               const plan::MachineConstants& constants,
                               const plan::LayerFactors& factors) {
  Pipeline& pipeline = pipeline_of(run);
  set_run_costs(pipeline.costs, cluster_, run, work, constants, factors);
  return pipeline.simulator.iteration(pipeline.costs);
}

}  // namespace pipewright::sim
