#include "pipewright/loop_torch/error_parts.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "pipewright/loop/predict/prediction.hpp"
#include "pipewright/plan/statistics.hpp"
#include "pipewright/plan/timeline/shard_waits.hpp"
#include "pipewright/sim/causes/measured_times.hpp"
#include "pipewright/sim/engine/simulator.hpp"

namespace pipewright::loop {
namespace {

/// The duration of each event, and how long after it could have started it started; both are 0 for
/// events that are not compute.
struct MeasuredEvents {
  std::vector<double> seconds;
  std::vector<double> gaps;
};

MeasuredEvents measured_events(const sim::Structure& structure, const plan::Timeline& step) {
  const sim::Times times = sim::times_of(structure, step);
  MeasuredEvents events;
  // Since when each rank has been free.
  std::vector<double> free(static_cast<std::size_t>(step.ranks));
  for (int event = 0; event < structure.size(); ++event) {
    const auto& own = structure.events()[event];
    double seconds = 0, gap = 0;
    if (plan::is_compute(own.instruction->kind)) {
      const sim::EventTimes& ran = times[event];
      double& since = free[static_cast<std::size_t>(own.rank)];
      double could = since;  // the earliest possible start
      structure.events().for_each_predecessor(event, [&](int before, plan::Until) {
        const bool was_there = plan::is_receive(structure.events()[before].instruction->kind) &&
                               !sim::waited_for(structure, times, before);
        if (before != own.compute && !was_there)
          could = std::max(could, times[before].end);
      });
      seconds = ran.end - ran.start;
      gap = std::max(0.0, ran.start - could);
      since = ran.end;
    }
    events.seconds.push_back(seconds);
    events.gaps.push_back(gap);
  }
  return events;
}

}  // namespace

loop::StepFigures typical_figures(const std::vector<loop::StepFigures>& steps, std::size_t skip) {
  loop::StepFigures typical = steps.front();
  for (const loop::StepFigures& step : steps)
    for (std::size_t rank = 0; rank < typical.peak.size(); ++rank)
      typical.peak[rank] = std::max(typical.peak[rank], step.peak[rank]);
  const auto median_of = [&](const auto& of) {
    std::vector<double> values;
    for (std::size_t step = skip; step < steps.size(); ++step)
      values.push_back(of(steps[step]).value);
    return plan::Seconds{plan::median(values)};
  };
  typical.iteration = median_of([](const loop::StepFigures& f) { return f.iteration; });
  for (std::size_t rank = 0; rank < typical.busy.size(); ++rank) {
    typical.busy[rank] = median_of([&](const loop::StepFigures& f) { return f.busy[rank]; });
    typical.bubble[rank] = median_of([&](const loop::StepFigures& f) { return f.bubble[rank]; });
    typical.shards[rank] = median_of([&](const loop::StepFigures& f) { return f.shards[rank]; });
  }
  return typical;
}

namespace {

/// Marks the part of each span that was spent in tensor-parallel communication, and the part spent
/// waiting for a late rank, in the same proportion as in the play.
plan::Timeline with_played_shards(plan::Timeline timeline, const std::vector<double>& seconds,
                                  const std::vector<double>& among,
                                  const std::vector<double>& late) {
  for (std::size_t event = 0; event < seconds.size(); ++event) {  // one span per event
    plan::Span& span = timeline.spans[event];
    if (!(seconds[event] > 0))
      continue;
    span.shards = (span.end - span.start) * std::min(1.0, among[event] / seconds[event]);
    span.late = std::min(span.shards, (span.end - span.start) * (late[event] / seconds[event]));
  }
  return plan::with_shard_waits(std::move(timeline));
}

}  // namespace

RehearsedPrediction predict(const plan::Scenario& scenario, const Plan& plan,
                            const plan::LayerCosts& planned, const Rehearsed& rehearsed) {
  RehearsedPrediction found;
  found.costs = costs_of(rehearsed, scenario, plan, planned);
  sim::ScenarioPlan timed = static_cast<const sim::ScenarioPlan&>(plan);
  std::vector<loop::StepFigures> all;
  std::vector<plan::Timeline> timelines;
  const auto plays = plays_of(rehearsed, scenario.pipeline, &RehearsedRank::plays);
  const auto among = plays_of(rehearsed, scenario.pipeline, &RehearsedRank::shards);
  const auto late = plays_of(rehearsed, scenario.pipeline, &RehearsedRank::late);
  for (sim::StepCosts& costs : step_costs_of(rehearsed, scenario, plan, found.costs)) {
    const std::size_t play = timelines.size();
    timed.costs = std::move(costs);
    timelines.push_back(predict(scenario, timed).timeline);
    // The all-to-all of experts is not rehearsed.
    if (!among.empty() && scenario.pipeline.expert == 1)
      timelines.back() =
          with_played_shards(std::move(timelines.back()), plays[play], among[play], late[play]);
    all.push_back(loop::figures_of(timelines.back()));
  }
  found.figures = typical_figures(all);
  found.timeline = *std::min_element(
      timelines.begin(), timelines.end(), [&](const plan::Timeline& a, const plan::Timeline& b) {
        const auto off = [&](const plan::Timeline& t) {
          return std::abs((t.length - found.figures.iteration).value);
        };
        return off(a) < off(b);
      });
  return found;
}

ErrorParts error_parts(const Plan& plan, const std::vector<plan::Timeline>& steps,
                       plan::Seconds predicted, plan::Seconds measured) {
  sim::StepCosts costs = plan.costs;
  // The measured times already contain these.
  costs.contended.clear();
  for (plan::Link* const link : plan::links_of(costs.cluster))
    link->overheads = {};
  sim::Simulator simulator(*plan.structure);
  const auto iteration = [&](const std::vector<double>& seconds) {
    return simulator.run_shared(with_measured(*plan.structure, costs, seconds)).iteration;
  };
  std::vector<double> with_actions, with_gaps;
  for (const plan::Timeline& step : steps) {
    MeasuredEvents events = measured_events(*plan.structure, step);
    with_actions.push_back(iteration(events.seconds));
    for (std::size_t event = 0; event < events.seconds.size(); ++event)
      events.seconds[event] += events.gaps[event];
    with_gaps.push_back(iteration(events.seconds));
  }
  const plan::Seconds actions{plan::median(with_actions)}, gaps{plan::median(with_gaps)};
  return {predicted - actions, actions - gaps, gaps - measured};
}

}  // namespace pipewright::loop
