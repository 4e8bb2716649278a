#include "logged.hpp"

#include <algorithm>

#include "pipewright/plan/timeline/timeline.hpp"
#include "pipewright/sim/causes/measured_times.hpp"

namespace pipewright::loop {
namespace {

/// Returns the duration of a step if the devices did its FLOPs, forward and backward, at their peak
/// rate; 0 if that is unknown.
double least_seconds(const plan::Scenario& scenario, const Workload& workload) {
  constexpr int forward_and_backward = 3;
  const double peak = scenario.cluster.device.flops_per_s * ranks_of_job(scenario.pipeline);
  double forward = 0;
  for (const plan::Layer& layer : plan::model_of(scenario).layers)
    forward += layer.forward_flops;
  return peak > 0 ? forward_and_backward * forward * workload.samples_per_step() / peak : 0;
}

/// Adds the figures that come from the timeline.
void note_timeline(const plan::Timeline& timeline, StepLine& line) {
  double bubble = 0;
  int ranks = 0;
  const auto busy = plan::busy_per_rank(timeline);
  for (const plan::Seconds computing : busy)
    if (computing > plan::Seconds{}) {  // ranks of other processes have no records here
      bubble += 1 - computing / timeline.length;
      ++ranks;
    }
  if (ranks > 0)
    line.bubble = bubble / ranks;
  const auto peaks = plan::peak_per_rank(timeline);
  line.peak_bytes = static_cast<double>(std::max_element(peaks.begin(), peaks.end())->value);
  const plan::IdleByCause idle = sum(plan::idle_by_cause(timeline));
  for (std::size_t cause = 0; cause < idle.size(); ++cause)
    if (idle[cause] > plan::Seconds{})
      line.waiting[to_string(static_cast<plan::IdleCause>(cause))] = idle[cause].value;
  const auto kinds = plan::busy_per_kind(timeline);
  if (const auto loads = kinds.find("LOAD"); loads != kinds.end())
    // A LOAD is the time spent waiting for a microbatch.
    line.waiting["data"] = loads->second.value;
}

/// Returns the timeline of the step, with the causes of idle time if all of its ranks are in this
/// process.
plan::Timeline logged_timeline(const TrainedStep& step, const Prepared& prepared) {
  plan::Timeline timeline = timeline_of(step.record, "last step");
  const auto& ranks = step.record.ranks;
  const bool is_whole =
      std::none_of(ranks.begin(), ranks.end(), [](const auto& records) { return records.empty(); });
  return is_whole ? sim::with_idle_causes(*prepared.plan.structure, std::move(timeline)) : timeline;
}

/// Returns the line of steps.jsonl for a step. `timeline` has the causes of idle time if they are
/// known.
StepLine step_line(const TrainedStep& step, const plan::Timeline& timeline,
                   const Prepared& prepared, double least_s) {
  const plan::Scenario& scenario = prepared.scenario;
  const double seconds = step.result.duration.value;
  StepLine line{step.step,
                scenario.training.steps,
                step.result.loss,
                seconds,
                prepared.workload.units_per_step() / seconds,
                prepared.workload.unit()};
  line.learning_rate = step.learning_rate;
  if (plan::needs_gradient_norm(scenario.training))
    line.gradient_norm = step.result.gradient_norm;
  line.evaluation_loss = step.evaluation_loss;
  line.slow = step.slow;
  if (least_s > 0)
    line.mfu = least_s / seconds;
  note_timeline(timeline, line);
  return line;
}

}  // namespace

TrainingOptions logged(const TrainingOptions& options, StepLog& log, const Prepared& prepared) {
  TrainingOptions with_log = options;
  with_log.after_step =
      [&log, &prepared, before = options.after_step,
       least_s = least_seconds(prepared.scenario, prepared.workload)](const TrainedStep& step) {
        if (before)
          before(step);
        plan::Timeline timeline = logged_timeline(step, prepared);
        log.add(step_line(step, timeline, prepared, least_s));
        log.show([&] { return std::move(timeline); });
      };
  return with_log;
}

}  // namespace pipewright::loop
