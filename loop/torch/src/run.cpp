#include "pipewright/loop_torch/run.hpp"

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/timeline/comparison.hpp"
#include "pipewright/plan/timeline/idle_comparison.hpp"
#include "pipewright/sim/measured_times.hpp"

namespace pipewright::loop {
namespace {

/// At most so many steps have a rehearsal before them.
constexpr int most_plays = 50;

plan::Json percent(plan::Seconds part, plan::Seconds whole) { return 100 * (part / whole); }

}  // namespace

RunOutcome run(const plan::Scenario& scenario, Plan plan, const plan::LayerCosts& costs,
               const Workload& workload, const TrainingWishes& wishes, bool rehearses) {
  std::optional<DressRehearsal> rehearsal;
  if (rehearses && can_rehearse(plan.program(), workload))
    rehearsal.emplace(scenario, plan, workload);
  const int plays_apart = (scenario.training.steps + most_plays - 1) / most_plays;
  TrainingWishes own = wishes;
  own.before_step = [&](int step) {
    if (wishes.before_step)
      wishes.before_step(step);
    if (rehearsal && step % plays_apart == 0 && (wishes.stop == nullptr || !*wishes.stop))
      rehearsal->play();
  };
  Membership alone;
  RunOutcome outcome;
  outcome.training = train(scenario, plan, workload, alone, own);
  Told& told = outcome.told;
  told.planned = told.predicted = plan::figures_of(plan.predicted);
  told.drift = costs.drift;
  if (rehearsal && rehearsal->played() > 0) {
    RehearsedPrediction found = predict(scenario, plan, costs, *rehearsal);
    told.rehearsed = true;
    told.predicted = found.figures;
    told.drift = found.costs.drift;
    plan.predicted = std::move(found.timeline);
    outcome.rehearsed = std::move(found.costs);
  }
  const TrainingOutcome& trained = outcome.training;
  if (!trained.steps.empty()) {
    told.measured = typical_figures(trained.steps, trained.warm_up());
    told.parts = explain(plan, trained, told.predicted.iteration, told.measured.iteration);
    outcome.measured = sim::with_idle_causes(
        *plan.structure, timeline_of(typical_step(trained.steps, trained.warm_up()), "measured"));
  }
  outcome.plan = std::move(plan);
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
  if (outcome.steps.empty())
    return report;
  report["measured"] = to_json(told.measured);
  report["error_percent"] = plan::error_json(told.predicted, told.measured);
  report["planned_error_percent"] = plan::error_json(told.planned, told.measured);
  const plan::Seconds whole = told.measured.iteration;
  report["error_parts_percent"] = {{"layers", percent(told.parts.layers, whole)},
                                   {"launch", percent(told.parts.launch, whole)},
                                   {"transfers_and_waiting", percent(told.parts.waiting, whole)}};
  if (run.measured)
    report["idle_s"] = plan::idle_json(plan::compare_idle(run.plan.predicted, *run.measured));
  report["machine_drift_percent"] = 100 * told.drift;
  report["steps_measured"] = outcome.steps.size() - outcome.warm_up();
  report["loss"] = outcome.losses;
  report[workload.unit() + "_per_s"] = outcome.units_per_s;
  return report;
}

}  // namespace pipewright::loop
