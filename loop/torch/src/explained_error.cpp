#include "pipewright/loop_torch/explained_error.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "pipewright/loop/prediction.hpp"
#include "pipewright/plan/statistics.hpp"
#include "pipewright/sim/simulator.hpp"

namespace pipewright::loop {
namespace {

using Records = std::vector<exec::InstructionRecord>;

/// By event: how long it took, and how long after it could have begun it did; 0 of what is no
/// compute.
struct MeasuredEvents {
  std::vector<double> seconds;
  std::vector<double> gaps;
};

/// What brings the data of `i`, if it crosses the border of a rank.
plan::InstructionKey receive_key(const plan::Instruction& i) {
  using Kind = plan::InstructionKind;
  return {i.kind == Kind::Forward ? Kind::ReceiveActivation : Kind::ReceiveGradient, i.stage,
          i.microbatch};
}

void add_rank(const std::vector<plan::Instruction>& instructions, const Records& records,
              MeasuredEvents& events) {
  std::map<plan::InstructionKey, const exec::InstructionRecord*> known;
  for (const exec::InstructionRecord& record : records)
    known[key_of(record.instruction)] = &record;
  double free = 0;  // since when the rank is
  for (const plan::Instruction& i : instructions) {
    const auto found = known.find(key_of(i));
    double seconds = 0, gap = 0;
    if (plan::is_compute(i.kind) && found != known.end()) {
      const exec::InstructionRecord& own = *found->second;
      const auto receive = known.find(receive_key(i));
      const double arrived = receive == known.end() ? 0 : receive->second->end.value;
      seconds = (own.end - own.start).value;
      gap = std::max(0.0, own.start.value - std::max(free, arrived));
      free = own.end.value;
    }
    events.seconds.push_back(seconds);
    events.gaps.push_back(gap);
  }
}

MeasuredEvents measured_events(const plan::Program& program, const StepRecord& step) {
  MeasuredEvents events;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    add_rank(program.ranks[rank], step.ranks[rank], events);
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

ErrorParts explain(const Plan& plan, const TrainingOutcome& outcome, plan::Seconds predicted,
                   plan::Seconds measured) {
  sim::StepCosts costs = plan.costs;
  costs.contended.clear();  // what was measured holds it already
  sim::Simulator simulator(*plan.structure);
  std::vector<double> with_actions, with_gaps;
  for (std::size_t s = outcome.warm_up(); s < outcome.steps.size(); ++s) {
    MeasuredEvents events = measured_events(plan.program(), outcome.steps[s]);
    with_actions.push_back(
        simulator.iteration(with_measured(*plan.structure, costs, events.seconds)));
    for (std::size_t event = 0; event < events.seconds.size(); ++event)
      events.seconds[event] += events.gaps[event];
    with_gaps.push_back(simulator.iteration(with_measured(*plan.structure, costs, events.seconds)));
  }
  const plan::Seconds actions{plan::median(with_actions)}, gaps{plan::median(with_gaps)};
  return {predicted - actions, actions - gaps, gaps - measured};
}

}  // namespace pipewright::loop
