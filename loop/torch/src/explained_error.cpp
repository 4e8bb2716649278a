#include "pipewright/loop_torch/explained_error.hpp"

#include <algorithm>
#include <cmath>

#include "pipewright/loop/prediction.hpp"
#include "pipewright/plan/statistics.hpp"
#include "pipewright/sim/measured_times.hpp"
#include "pipewright/sim/simulator.hpp"

namespace pipewright::loop {
namespace {

/// By event: how long it took, and how long after it could have begun it did; 0 of what is no
/// compute.
struct MeasuredEvents {
  std::vector<double> seconds;
  std::vector<double> gaps;
};

MeasuredEvents measured_events(const sim::Structure& structure, const plan::Timeline& step) {
  const sim::Times times = sim::times_of(structure, step);
  MeasuredEvents events;
  std::vector<double> free(static_cast<std::size_t>(step.ranks));  // since when each rank is
  for (int event = 0; event < structure.size(); ++event) {
    const auto& own = structure.events()[event];
    double seconds = 0, gap = 0;
    if (plan::is_compute(own.instruction->kind)) {
      const sim::EventTimes& ran = times[event];
      const double arrived = own.data < 0 ? 0 : times[own.data].end;
      double& since = free[static_cast<std::size_t>(own.rank)];
      seconds = ran.end - ran.start;
      gap = std::max(0.0, ran.start - std::max(since, arrived));
      since = ran.end;
    }
    events.seconds.push_back(seconds);
    events.gaps.push_back(gap);
  }
  return events;
}

plan::StepFigures medians(const std::vector<plan::StepFigures>& all) {
  plan::StepFigures typical = all.front();
  const auto median_of = [&](const auto& of) {
    std::vector<double> values;
    for (const plan::StepFigures& figures : all)
      values.push_back(of(figures).value);
    return plan::Seconds{plan::median(values)};
  };
  typical.iteration = median_of([](const plan::StepFigures& f) { return f.iteration; });
  for (std::size_t rank = 0; rank < typical.busy.size(); ++rank) {
    typical.busy[rank] = median_of([&](const plan::StepFigures& f) { return f.busy[rank]; });
    typical.bubble[rank] = median_of([&](const plan::StepFigures& f) { return f.bubble[rank]; });
  }
  return typical;
}

}  // namespace

RehearsedPrediction predict(const plan::Scenario& scenario, const Plan& plan,
                            const plan::LayerCosts& planned, const DressRehearsal& rehearsal) {
  RehearsedPrediction found;
  found.costs = rehearsal.costs(planned);
  sim::ScenarioPlan timed = static_cast<const sim::ScenarioPlan&>(plan);
  std::vector<plan::StepFigures> all;
  std::vector<plan::Timeline> timelines;
  for (sim::StepCosts& costs : rehearsal.step_costs(found.costs)) {
    timed.costs = std::move(costs);
    timelines.push_back(predict(scenario, timed).timeline);
    all.push_back(plan::figures_of(timelines.back()));
  }
  found.figures = medians(all);
  found.timeline = *std::min_element(
      timelines.begin(), timelines.end(), [&](const plan::Timeline& a, const plan::Timeline& b) {
        const auto off = [&](const plan::Timeline& t) {
          return std::abs((t.length - found.figures.iteration).value);
        };
        return off(a) < off(b);
      });
  return found;
}

ErrorParts explain(const Plan& plan, const std::vector<plan::Timeline>& steps,
                   plan::Seconds predicted, plan::Seconds measured) {
  sim::StepCosts costs = plan.costs;
  costs.contended.clear();  // what was measured holds it already
  sim::Simulator simulator(*plan.structure);
  std::vector<double> with_actions, with_gaps;
  for (const plan::Timeline& step : steps) {
    MeasuredEvents events = measured_events(*plan.structure, step);
    with_actions.push_back(
        simulator.iteration(with_measured(*plan.structure, costs, events.seconds)));
    for (std::size_t event = 0; event < events.seconds.size(); ++event)
      events.seconds[event] += events.gaps[event];
    with_gaps.push_back(simulator.iteration(with_measured(*plan.structure, costs, events.seconds)));
  }
  const plan::Seconds actions{plan::median(with_actions)}, gaps{plan::median(with_gaps)};
  return {predicted - actions, actions - gaps, gaps - measured};
}

ErrorParts explain(const Plan& plan, const TrainingOutcome& outcome, plan::Seconds predicted,
                   plan::Seconds measured) {
  std::vector<plan::Timeline> steps;
  for (std::size_t s = outcome.warm_up(); s < outcome.steps.size(); ++s)
    steps.push_back(timeline_of(outcome.steps[s], "step"));
  return explain(plan, steps, predicted, measured);
}

}  // namespace pipewright::loop
