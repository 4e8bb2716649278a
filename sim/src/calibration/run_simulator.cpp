#include "pipewright/sim/calibration/run_simulator.hpp"

#include "pipewright/plan/generators/schedule_request.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/sim/calibration/run_costs.hpp"

namespace pipewright::sim {

namespace {

/// A transfer holds both ends, as Megatron-LM's do, unless stages are interleaved: then it sends
/// while it computes (--overlap-p2p-communication, the default there).
plan::Program program_of(const plan::Cut& cut, int microbatches) {
  const plan::ScheduleRequest request{.name = std::string(cut.schedule_name()),
                                      .ranks = cut.pipeline,
                                      .microbatches = microbatches,
                                      .chunks = cut.chunks,
                                      .group = cut.group,
                                      .rank_of_stage = {},
                                      .costs = {},
                                      .memory_units = {}};
  return plan::lower(plan::make_schedule(request), {.blocking = cut.chunks == 1});
}

}  // namespace

struct RunSimulator::Pipeline {
  Pipeline(const plan::Cut& cut, int microbatches)
      : structure(program_of(cut, microbatches)), simulator(structure) {}
  Structure structure;
  Simulator simulator;
  StepCosts costs;
};

RunSimulator::RunSimulator(const plan::Cluster& cluster) : cluster_(cluster) {}
RunSimulator::~RunSimulator() = default;

RunSimulator::Pipeline& RunSimulator::pipeline_of(const plan::Cut& cut, int microbatches) {
  auto& pipeline = pipelines_[{std::string(cut.schedule_name()), cut.pipeline, microbatches,
                               cut.chunks, cut.group}];
  if (!pipeline)
    pipeline = std::make_unique<Pipeline>(cut, microbatches);
  return *pipeline;
}

double RunSimulator::iteration(const plan::TransformerTraining& training, const plan::Cut& cut,
                               const plan::TransformerTimes& times) {
  Pipeline& pipeline = pipeline_of(cut, cut.microbatches(training.batch));
  set_step_costs(pipeline.costs, cluster_, training.model, cut, times);
  return pipeline.simulator.iteration(pipeline.costs);
}

}  // namespace pipewright::sim
