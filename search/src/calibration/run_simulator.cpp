#include "pipewright/search/calibration/run_simulator.hpp"

#include <algorithm>
#include <limits>

#include "pipewright/models/transformer/cut_schedule.hpp"
#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/search/calibration/run_costs.hpp"

namespace pipewright::search {

namespace {

/// Lowers the schedule. A transfer occupies both ends, as Megatron-LM's do. With interleaved stages
/// it may be sent while the rank computes (--overlap-p2p-communication, the default there since
/// 2024).
plan::Program program_of(const plan::ScheduleRequest& request, bool holds_both_ends) {
  return plan::lower(plan::make_schedule(request),
                     {.blocking = request.chunks == 1 || holds_both_ends});
}

/// Returns the costs by which a schedule orders its actions: those of all stages, or their mean.
plan::ScheduleCosts costs_for_order(const sim::StepCosts& costs, const plan::Cut& cut) {
  plan::ScheduleCosts answer{.stages = {}};
  plan::PassTimes mean{};
  const double share = 1.0 / static_cast<double>(costs.stages.size());
  for (const plan::StageCost& stage : costs.stages) {
    answer.stages.push_back({stage.forward, stage.input_gradient, stage.weight_gradient});
    mean.forward += plan::Seconds{stage.forward.value * share};
    mean.input_gradient += plan::Seconds{stage.input_gradient.value * share};
    mean.weight_gradient += plan::Seconds{stage.weight_gradient.value * share};
  }
  if (cut.chunks > 1)
    answer.stages = {mean};
  answer.transfer = {static_cast<double>(costs.stages.front().output.value) /
                     costs.cluster.within_node.bandwidth_per_s};
  return answer;
}

/// Returns the time from a rank's first pass to the end of its optimizer step, on the rank where
/// that is longest.
double longest_span(const sim::Structure& structure, const sim::Times& times) {
  double longest = 0;
  int event = 0;
  for (const auto& list : structure.program().ranks) {
    double begin = std::numeric_limits<double>::infinity(), end = 0;
    for (const plan::Instruction& instruction : list) {
      const sim::EventTimes& own = times[event++];
      if (plan::is_compute(instruction.kind))
        begin = std::min(begin, own.start);
      end = std::max(end, own.end);
    }
    longest = std::max(longest, end - begin);
  }
  return longest;
}

}  // namespace

struct RunSimulator::Pipeline {
  Pipeline(const plan::ScheduleRequest& request, bool holds_both_ends)
      : structure(program_of(request, holds_both_ends)), simulator(structure) {}
  sim::Structure structure;
  sim::Simulator simulator;
};

RunSimulator::RunSimulator(const plan::Cluster& cluster) : cluster_(cluster) {}
RunSimulator::~RunSimulator() = default;

RunSimulator::Pipeline& RunSimulator::pipeline_of(const plan::TransformerTraining& training,
                                                  const plan::Cut& cut) {
  const std::string& schedule = schedule_name(cut);
  const int microbatches = cut.microbatches(training.batch);
  const auto made = [&](const plan::ScheduleCosts& costs) {
    return std::make_unique<Pipeline>(models::schedule_request(schedule, cut.pipeline, microbatches,
                                                               cut.chunks, cut.group, costs),
                                      cut.holds_both_ends);
  };
  if (models::cut_schedule(schedule).orders_by_times) {
    for (const OrderedPipeline& known : ordered_)
      if (known.training == training && known.cut == cut)
        return *known.pipeline;
    return *ordered_.emplace_back(training, cut, made(costs_for_order(costs_, cut))).pipeline;
  }
  auto& pipeline = pipelines_[{schedule, cut.pipeline, microbatches, cut.chunks, cut.group,
                               cut.holds_both_ends}];
  if (!pipeline)
    pipeline = made({});
  return *pipeline;
}

double RunSimulator::iteration(const plan::TransformerTraining& training, const plan::Cut& cut,
                               const models::TransformerTimes& times) {
  set_step_costs(costs_, cluster_, training.model, cut, times);
  return pipeline_of(training, cut).simulator.iteration(costs_);
}

double RunSimulator::span(const plan::TransformerTraining& training, const plan::Cut& cut,
                          const models::TransformerTimes& times) {
  set_step_costs(costs_, cluster_, training.model, cut, times);
  Pipeline& pipeline = pipeline_of(training, cut);
  return longest_span(pipeline.structure, pipeline.simulator.run(costs_));
}

}  // namespace pipewright::search
