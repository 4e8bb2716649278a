#include "pipewright/loop_torch/run.hpp"

#include "pipewright/loop/compare/action_errors.hpp"
#include "pipewright/loop/compare/idle_comparison.hpp"
#include "pipewright/loop_torch/dress_rehearsal.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/sim/causes/measured_times.hpp"
#include "pipewright/trace/files/recorded_days.hpp"

namespace pipewright::loop {
namespace {

/// Number of steps, at most, that are preceded by a rehearsal.
constexpr int most_plays = 50;

plan::Json percent(plan::Seconds part, plan::Seconds whole) { return 100 * (part / whole); }

/// Replaces the prediction by that of the rehearsal.
void note_rehearsed(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                    const Rehearsed& rehearsed, RunOutcome& outcome) {
  RehearsedPrediction found = predict(scenario, outcome.plan, costs, rehearsed);
  outcome.figures.rehearsed = true;
  outcome.figures.predicted = found.figures;
  outcome.figures.drift = found.costs.drift;
  outcome.plan.predicted = std::move(found.timeline);
  outcome.rehearsed = std::move(found.costs);
}

/// Returns the times that all pipelines took in these steps.
models::RecordedSteps recorded_in(const std::vector<MeasuredTimeline>& all, std::size_t skip) {
  std::vector<std::vector<plan::Timeline>> pipelines;
  for (std::size_t step = skip; step < all.size(); ++step) {
    pipelines.resize(1 + all[step].others.size());
    pipelines.front().push_back(all[step].timeline);
    for (std::size_t other = 0; other < all[step].others.size(); ++other)
      pipelines[other + 1].push_back(all[step].others[other]);
  }
  return trace::record_of(pipelines, static_cast<int>(skip));
}

/// Stores the measured figures and the error of the prediction.
void note_measured(const std::vector<MeasuredTimeline>& all, RunOutcome& outcome) {
  const std::size_t skip = outcome.training.warm_up();
  std::vector<loop::StepFigures> figures;
  std::vector<plan::Timeline> warm;
  for (const MeasuredTimeline& step : all) {
    figures.push_back(loop::figures_of(step.timeline));
    if (figures.size() > skip)
      warm.push_back(step.timeline);
  }
  RunFigures& told = outcome.figures;
  told.measured = typical_figures(figures, skip);
  outcome.recorded = recorded_in(all, skip);
  told.parts = error_parts(outcome.plan, warm, told.predicted.iteration, told.measured.iteration);
  outcome.measured = all[typical_step(outcome.training.steps, skip)];
  outcome.measured->timeline =
      sim::with_idle_causes(*outcome.plan.structure, std::move(outcome.measured->timeline));
}

}  // namespace

RunOutcome run(const Prepared& prepared, Membership& members, const TrainingOptions& options) {
  const plan::Scenario& scenario = prepared.executed;
  std::optional<DressRehearsal> rehearsal;
  if (prepared.were_measured && can_rehearse(prepared.plan.program(), prepared.workload))
    rehearsal.emplace(scenario, prepared.plan, prepared.workload, members);
  const int plays_apart = (scenario.training.steps + most_plays - 1) / most_plays;
  TrainingOptions own = options;
  own.before_step = [&](int step) {
    if (options.before_step)
      options.before_step(step);
    if (rehearsal && step % plays_apart == 0 && (options.stop == nullptr || !*options.stop))
      rehearsal->play();
  };
  RunOutcome outcome{.plan = prepared.plan, .training = {}, .figures = {}};
  outcome.training = train(scenario, outcome.plan, prepared.workload, members, own);
  outcome.figures.planned = outcome.figures.predicted = loop::figures_of(outcome.plan.predicted);
  outcome.figures.drift = prepared.costs.drift;
  // The other processes have ended.
  if (members.in_job() && outcome.training.interrupted)
    return outcome;
  if (rehearsal && rehearsal->played() > 0)
    if (const Rehearsed rehearsed = rehearsal->rehearsed(); members.is_first())
      note_rehearsed(scenario, prepared.costs, rehearsed, outcome);
  const auto timelines = measured_timelines(outcome.training.steps, outcome.plan.program(),
                                            grid_of(scenario.pipeline), members);
  if (!timelines.empty())
    note_measured(timelines, outcome);
  return outcome;
}

plan::Json report_of(const Prepared& prepared, const RunOutcome& run) {
  const plan::Scenario& scenario = prepared.scenario;
  const TrainingOutcome& outcome = run.training;
  const RunFigures& figures = run.figures;
  plan::Json report{{"format", "pipewright/report/1"},
                    {"scenario", scenario.name},
                    {"schedule", scenario.pipeline.schedule.label()},
                    {"ranks", scenario.pipeline.ranks},
                    {"microbatches", scenario.pipeline.microbatches},
                    {"boundaries", run.plan.partition.boundaries},
                    {"interrupted", outcome.interrupted},
                    {"planned", to_json(figures.planned)},
                    {"predicted", to_json(figures.predicted)}};
  if (prepared.shared_gpu)
    report["shared_gpu"] = to_json(*prepared.shared_gpu);
  if (!run.measured)
    return report;
  report["measured"] = to_json(figures.measured);
  report["planned_error_percent"] = loop::error_json(figures.planned, figures.measured);
  report["error_percent"] = loop::error_json(figures.predicted, figures.measured);
  const plan::Seconds whole = figures.measured.iteration;
  report["error_parts_percent"] = {
      {"layers", percent(figures.parts.layers, whole)},
      {"launch", percent(figures.parts.launch, whole)},
      {"transfers_and_waiting", percent(figures.parts.waiting, whole)}};
  report["idle_s"] =
      loop::idle_json(loop::compare_idle(run.plan.predicted, run.measured->timeline));
  report["machine_drift_percent"] = 100 * figures.drift;
  report["steps_measured"] = outcome.steps.size() - outcome.warm_up();
  report["loss"] = outcome.losses;
  report[prepared.workload.unit() + "_per_s"] = outcome.units_per_s;
  return report;
}

}  // namespace pipewright::loop
