#include "pipewright/sim/causes/sensitivity.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "pipewright/sim/structure/durations.hpp"

namespace pipewright::sim {
namespace {

using plan::InstructionKind;

/// The derivatives of an event's times.
struct Growth {
  double released = 0;
  double end = 0;
};

/// The latest of several times, and its derivative: among times that are equal up to rounding, the
/// largest derivative counts.
class SteepestOfLatest {
 public:
  explicit SteepestOfLatest(double tolerance) : tolerance_(tolerance) {}
  void offer(double time, double growth) {
    if (time > time_ + tolerance_)
      growth_ = growth;
    else if (time >= time_ - tolerance_)
      growth_ = std::max(growth_, growth);
    time_ = std::max(time_, time);
  }
  double growth() const { return growth_; }

 private:
  double tolerance_;
  double time_ = 0;  // the start of the iteration, which is fixed
  double growth_ = 0;
};

constexpr double relative_tolerance = 1e-12;  // times within it are equal, up to rounding

/// The derivative of the iteration time in a direction of the costs.
class Slope {
 public:
  Slope(const Structure& structure, const Times& times)
      : structure_(structure),
        times_(times),
        tolerance_(relative_tolerance * times.iteration),
        growth_(static_cast<std::size_t>(structure.size())) {}

  template <class Direction>
  double along(const Direction& direction) {
    SteepestOfLatest last(tolerance_);
    for (const int event : structure_.order()) {
      Growth& own = growth_[static_cast<std::size_t>(event)];
      const EventCost moved = direction(event);
      const double start = growth_of_start(event);
      if (plan::is_receive(structure_.events()[event].instruction->kind))
        own = growth_of_receive(event, start);
      else
        own = {start + moved.held, start + moved.held + moved.latency};
      last.offer(times_[event].end, own.end);
    }
    return last.growth();
  }

 private:
  double growth_of_start(int event) const {
    const auto& self = structure_.events()[event];
    const bool receives = plan::is_receive(self.instruction->kind);
    SteepestOfLatest start(tolerance_);
    structure_.events().for_each_predecessor(event, [&](int before, plan::Until until) {
      if (receives && before == self.partner)
        return;
      const Growth& other = growth_[static_cast<std::size_t>(before)];
      if (until == plan::Until::Done)
        start.offer(times_[before].end, other.end);
      else
        start.offer(times_[before].released, other.released);
    });
    return start.growth();
  }

  Growth growth_of_receive(int event, double start) const {
    const int send = structure_.events()[event].partner;
    const Growth& sent = growth_[static_cast<std::size_t>(send)];
    SteepestOfLatest released(tolerance_), end(tolerance_);
    released.offer(times_[event].start, start);
    released.offer(times_[send].released, sent.released);
    end.offer(times_[event].start, start);
    end.offer(times_[send].end, sent.end);
    return {released.growth(), end.growth()};
  }

  const Structure& structure_;
  const Times& times_;
  double tolerance_;
  std::vector<Growth> growth_;
};

/// Returns how an instruction's time changes if the three times of its stage change by these.
double moved_by(plan::Work work, double forward, double input_gradient, double weight_gradient) {
  switch (work) {
    case plan::Work::Forward:
      return forward;
    case plan::Work::InputGradient:
      return input_gradient;
    case plan::Work::WeightGradient:
      return weight_gradient;
    case plan::Work::Backward:
      return input_gradient + weight_gradient;
    case plan::Work::None:
    case plan::Work::Load:
    case plan::Work::Rerun:  // see `again_in`
    case plan::Work::OptimizerStep:
      return 0;
  }
  return 0;
}

/// Returns the fraction of the stage's forward that is recomputed in an event: R recomputes its
/// last layers, the backward the others.
double again_in(const Structure& structure, const plan::StageCost& cost, int event) {
  const InstructionKind kind = structure.events()[event].instruction->kind;
  const plan::Seconds all = cost.rerun.first + cost.rerun.others;
  if (!structure.recomputes(event) || !(all.value > 0))
    return 0;
  if (plan::runs_forward_again(kind))
    return cost.rerun.first / all;
  return plan::makes_input_gradient(kind) ? cost.rerun.others / all : 0;
}

/// Returns the weight of one second of stage time: it is longer on a slow rank and for a long
/// microbatch.
double scale_of(const StepCosts& costs, const plan::Dependencies::Event& event) {
  double scale = 1;
  const int microbatch = event.instruction->microbatch;
  if (!costs.microbatch_lengths.empty() && microbatch >= 0)
    scale *= costs.microbatch_lengths[static_cast<std::size_t>(microbatch)];
  return scale / slowest_speed(costs, event.rank);
}

}  // namespace

std::vector<StageSensitivity> stage_sensitivities(const Structure& structure, const Times& times,
                                                  const StepCosts& costs) {
  Slope slope(structure, times);
  std::vector<StageSensitivity> found;
  for (int stage = 0; stage < plan::stage_count(structure.program()); ++stage) {
    const plan::StageCost& cost = costs.stages[static_cast<std::size_t>(stage)];
    const auto saved = [&](double forward, double input_gradient, double weight_gradient) {
      return -slope.along([&](int event) -> EventCost {
        const auto& own = structure.events()[event];
        if (own.instruction->stage != stage)
          return {};
        const double moved = moved_by(plan::traits_of(own.instruction->kind).work, forward,
                                      input_gradient, weight_gradient) +
                             again_in(structure, cost, event) * forward;
        return {-scale_of(costs, own) * moved, 0};
      });
    };
    const plan::Seconds sum = cost.forward + cost.input_gradient + cost.weight_gradient;
    StageSensitivity own{saved(1, 0, 0), saved(0, 1, 0), saved(0, 0, 1), 0};
    if (sum.value > 0)
      own.all = saved(cost.forward / sum, cost.input_gradient / sum, cost.weight_gradient / sum);
    found.push_back(own);
  }
  return found;
}

std::vector<LinkSensitivity> link_sensitivities(const Structure& structure, const Times& times) {
  const plan::Dependencies& events = structure.events();
  std::map<std::pair<int, int>, std::vector<int>> transfers;
  for (const int event : structure.representatives())
    if (plan::is_send(events[event].instruction->kind))
      transfers[{events[event].rank, events[events[event].partner].rank}].push_back(event);
  Slope slope(structure, times);
  std::vector<LinkSensitivity> found;
  for (const auto& [ranks, sends] : transfers) {
    const auto [from, to] = ranks;
    const int sender = from, receiver = to;  // Clang's lambdas capture no structured binding
    const auto saved = [&](EventCost less) {
      return -slope.along([&](int event) -> EventCost {
        const auto& own = events[event];
        const bool moves = plan::is_send(own.instruction->kind) && own.rank == sender &&
                           events[own.partner].rank == receiver;
        return moves ? less : EventCost{};
      });
    };
    found.push_back({from, to, saved({0, -1}), saved({-1, 0})});
  }
  return found;
}

}  // namespace pipewright::sim
