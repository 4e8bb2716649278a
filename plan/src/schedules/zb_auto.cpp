#include "pipewright/plan/schedules/zb_auto.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "closed_forms.hpp"
#include "pipewright/plan/error.hpp"
#include "sizes.hpp"
#include "zero_bubble/annealing.hpp"
#include "zero_bubble/bound.hpp"
#include "zero_bubble/eager.hpp"
#include "zero_bubble/greedy.hpp"
#include "zero_bubble/timing.hpp"

namespace pipewright::plan {
namespace {

using zero_bubble::Order;
using zero_bubble::Problem;
using zero_bubble::Spans;

/// A list's value for one stage.
template <class Value>
Value of_stage(const std::vector<Value>& list, int stage) {
  return list.size() == 1 ? list[0] : list[stage];
}

void check_length(std::string_view what, std::size_t length, int stages) {
  if (length != 1 && length != static_cast<std::size_t>(stages))
    throw InputError(fmt::format(
        "zb-auto: {} of {} given for {} stages; possible are one for all, or one for each", length,
        what, stages));
}

void check_time(const std::string& what, Seconds time) {
  if (!std::isfinite(time.value) || time.value < 0)
    throw InputError(
        fmt::format("zb-auto: {} is {}; the least is 0, and it must be finite", what, time.value));
}

void check_times(char letter, const std::vector<Seconds>& times, int stages) {
  check_length(fmt::format("the times of {}", letter), times.size(), stages);
  for (std::size_t at = 0; at < times.size(); ++at)
    check_time(fmt::format("the time of {}{}", letter,
                           times.size() == 1 ? "" : fmt::format(" on stage {}", at)),
               times[at]);
}

void check_memory(const std::vector<int>& units, int stages) {
  if (units.empty())
    return;
  check_length("the memory limits", units.size(), stages);
  const int least = *std::min_element(units.begin(), units.end());
  if (least < 2)
    throw InputError(
        fmt::format("zb-auto: a memory limit of {} unit{} holds no microbatch; the least is 2",
                    least, least == 1 ? "" : "s"));
}

Problem problem_of(int stages, int microbatches, const ZeroBubbleCosts& costs) {
  Problem problem{.microbatches = microbatches, .stages = {}, .transfer = costs.transfer.value};
  const int all = 2 * microbatches;  // what no stage can exceed
  for (int stage = 0; stage < stages; ++stage)
    problem.stages.push_back(
        {.forward = of_stage(costs.forward, stage).value,
         .input_gradient = of_stage(costs.input_gradient, stage).value,
         .weight_gradient = of_stage(costs.weight_gradient, stage).value,
         .memory_limit = costs.memory_units.empty()
                             ? all
                             : std::min(all, of_stage(costs.memory_units, stage))});
  return problem;
}

/// The best that can be had without search.
std::vector<Order> constructed_orders(const Problem& problem) {
  zero_bubble::Timing timing(problem);
  std::vector<Order> best = zero_bubble::eager_orders(problem);
  Spans least = timing.spans(best);
  for (const bool wait : {false, true})
    for (const bool gradient_first : {false, true})
      for (const bool overfill : {false, true}) {
        std::vector<Order> orders =
            zero_bubble::greedy_orders(problem, {.wait_for_first_gradient = wait,
                                                 .gradient_before_forward = gradient_first,
                                                 .overfill_waits = overfill});
        const Spans spans = timing.spans(orders);
        if (spans < least) {
          least = spans;
          best = std::move(orders);
        }
      }
  return best;
}

Schedule schedule_of(const std::vector<Order>& orders, int microbatches) {
  Schedule schedule{.microbatches = microbatches, .ranks = {}};
  for (const Order& order : orders) {
    const int stage = static_cast<int>(schedule.ranks.size());
    std::map<ActionKind, int> next;  // microbatch
    std::vector<Action> actions;
    for (const ActionKind kind : order)
      actions.push_back({kind, stage, next[kind]++});
    schedule.ranks.push_back(std::move(actions));
  }
  return schedule;
}

}  // namespace

ZeroBubblePlan make_zb_auto(int stages, int microbatches, const ZeroBubbleCosts& costs) {
  check_sizes("zb-auto", stages, microbatches);
  check_times('F', costs.forward, stages);
  check_times('I', costs.input_gradient, stages);
  check_times('W', costs.weight_gradient, stages);
  check_time("the time of a transfer", costs.transfer);
  check_memory(costs.memory_units, stages);

  const Problem problem = problem_of(stages, microbatches, costs);
  const double bound = zero_bubble::lower_bound(problem);
  const std::vector<Order> orders =
      zero_bubble::anneal(problem, constructed_orders(problem), bound);
  const double span = zero_bubble::Timing(problem).spans(orders).longest;
  return {.schedule = schedule_of(orders, microbatches),
          .longest_span = {span},
          .lower_bound = {std::min(bound, span)}};  // they may differ by rounding
}

namespace {

std::vector<Seconds> seconds(const std::vector<double>& list) {
  std::vector<Seconds> times;
  times.reserve(list.size());
  for (const double time : list)
    times.push_back({time});
  return times;
}

ZeroBubbleCosts costs_of(const ScheduleRequest& request) {
  return {.forward = seconds(request.times.forward),
          .input_gradient = seconds(request.times.input_gradient),
          .weight_gradient = seconds(request.times.weight_gradient),
          .transfer = {request.times.transfer},
          .memory_units =
              request.memory_units ? std::vector{*request.memory_units} : std::vector<int>{}};
}

}  // namespace

ScheduleDescriptor schedule::zb_auto() {
  return {.name = "zb-auto",
          .takes = "`--costs`, by which it orders its actions; `--memory-units`, a limit per rank",
          .takes_memory_units = true,
          .orders_by_times = true,
          .make = [](const ScheduleRequest& r) -> MadeSchedule {
            ZeroBubblePlan plan = make_zb_auto(r.ranks, r.microbatches, costs_of(r));
            return {.schedule = std::move(plan.schedule),
                    .bound = MadeSchedule::Bound{plan.longest_span, plan.lower_bound}};
          },
          .bubble = {"found by search"},
          .bubble_is_of_span = true,
          .activations = {"by its limit"}};
}

}  // namespace pipewright::plan
