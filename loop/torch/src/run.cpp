#include "pipewright/loop_torch/run.hpp"

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/comparison.hpp"
#include "pipewright/plan/timeline/idle_comparison.hpp"
#include "pipewright/sim/causes/measured_times.hpp"

namespace pipewright::loop {
namespace {

/// At most so many steps have a rehearsal before them.
constexpr int most_plays = 50;

plan::Json percent(plan::Seconds part, plan::Seconds whole) { return 100 * (part / whole); }

/// What was predicted anew, where anything was rehearsed.
void tell_rehearsed(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                    const Rehearsed& rehearsed, RunOutcome& outcome) {
  RehearsedPrediction found = predict(scenario, outcome.plan, costs, rehearsed);
  outcome.told.rehearsed = true;
  outcome.told.predicted = found.figures;
  outcome.told.drift = found.costs.drift;
  outcome.plan.predicted = std::move(found.timeline);
  outcome.rehearsed = std::move(found.costs);
}

/// What was measured, and the error of what was predicted.
void tell_measured(const std::vector<MeasuredTimeline>& all, RunOutcome& outcome) {
  const std::size_t skip = outcome.training.warm_up();
  std::vector<plan::StepFigures> figures;
  std::vector<plan::Timeline> warm;
  for (const MeasuredTimeline& step : all) {
    figures.push_back(plan::figures_of(step.timeline));
    if (figures.size() > skip)
      warm.push_back(step.timeline);
  }
  Told& told = outcome.told;
  told.measured = typical_figures(figures, skip);
  told.parts = explain(outcome.plan, warm, told.predicted.iteration, told.measured.iteration);
  outcome.measured = all[typical_step(outcome.training.steps, skip)];
  outcome.measured->timeline =
      sim::with_idle_causes(*outcome.plan.structure, std::move(outcome.measured->timeline));
}

}  // namespace

RunOutcome run(const plan::Scenario& scenario, Plan plan, const plan::LayerCosts& costs,
               const Workload& workload, Membership& members, const TrainingWishes& wishes,
               bool rehearses) {
  std::optional<DressRehearsal> rehearsal;
  if (rehearses && can_rehearse(plan.program(), workload))
    rehearsal.emplace(scenario, plan, workload, members);
  const int plays_apart = (scenario.training.steps + most_plays - 1) / most_plays;
  TrainingWishes own = wishes;
  own.before_step = [&](int step) {
    if (wishes.before_step)
      wishes.before_step(step);
    if (rehearsal && step % plays_apart == 0 && (wishes.stop == nullptr || !*wishes.stop))
      rehearsal->play();
  };
  RunOutcome outcome{.plan = std::move(plan), .training = {}, .told = {}};
  outcome.training = train(scenario, outcome.plan, workload, members, own);
  Told& told = outcome.told;
  told.planned = told.predicted = plan::figures_of(outcome.plan.predicted);
  told.drift = costs.drift;
  // The others have ended.
  if (members.in_job() && outcome.training.interrupted)
    return outcome;
  if (rehearsal && rehearsal->played() > 0)
    if (const Rehearsed rehearsed = rehearsal->rehearsed(); members.is_first())
      tell_rehearsed(scenario, costs, rehearsed, outcome);
  const auto timelines =
      measured_timelines(outcome.training.steps, outcome.plan.program(), members);
  if (!timelines.empty())
    tell_measured(timelines, outcome);
  return outcome;
}

plan::Json report_of(const plan::Scenario& scenario, const RunOutcome& run,
                     const Workload& workload) {
  const TrainingOutcome& outcome = run.training;
  const Told& told = run.told;
  plan::Json report{{"format", "pipewright/report/1"},
                    {"scenario", scenario.name},
                    {"schedule", scenario.pipeline.schedule},
                    {"ranks", scenario.pipeline.ranks},
                    {"microbatches", scenario.pipeline.microbatches},
                    {"boundaries", run.plan.partition.boundaries},
                    {"interrupted", outcome.interrupted},
                    {"planned", to_json(told.planned)},
                    {"predicted", to_json(told.predicted)}};
  if (!run.measured)
    return report;
  report["measured"] = to_json(told.measured);
  report["error_percent"] = plan::error_json(told.predicted, told.measured);
  report["planned_error_percent"] = plan::error_json(told.planned, told.measured);
  const plan::Seconds whole = told.measured.iteration;
  report["error_parts_percent"] = {{"layers", percent(told.parts.layers, whole)},
                                   {"launch", percent(told.parts.launch, whole)},
                                   {"transfers_and_waiting", percent(told.parts.waiting, whole)}};
  report["idle_s"] =
      plan::idle_json(plan::compare_idle(run.plan.predicted, run.measured->timeline));
  report["machine_drift_percent"] = 100 * told.drift;
  report["steps_measured"] = outcome.steps.size() - outcome.warm_up();
  report["loss"] = outcome.losses;
  report[workload.unit() + "_per_s"] = outcome.units_per_s;
  return report;
}

}  // namespace pipewright::loop
