#include "pipewright/plan/generators/zb_auto.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "closed_forms.hpp"
#include "generators/zero_bubble/annealing.hpp"
#include "generators/zero_bubble/bound.hpp"
#include "generators/zero_bubble/eager.hpp"
#include "generators/zero_bubble/greedy.hpp"
#include "generators/zero_bubble/timing.hpp"
#include "pipewright/plan/error.hpp"
#include "schedules/sizes.hpp"

namespace pipewright::plan {
namespace {

using zero_bubble::Order;
using zero_bubble::Problem;
using zero_bubble::Spans;

void check_memory(const std::vector<int>& units, int stages) {
  if (units.empty())
    return;
  if (units.size() != 1 && units.size() != static_cast<std::size_t>(stages))
    throw InputError(
        fmt::format("zb-auto: {} memory limits given for {} stages; possible are one for all, or "
                    "one of each",
                    units.size(), stages));
  const int least = *std::min_element(units.begin(), units.end());
  if (least < 2)
    throw InputError(
        fmt::format("zb-auto: a memory limit of {} unit{} holds no microbatch; the least is 2",
                    least, least == 1 ? "" : "s"));
}

Problem problem_of(int stages, int microbatches, const ScheduleCosts& costs,
                   const std::vector<int>& memory_units) {
  Problem problem{microbatches, {{}, costs.transfer}, {}};
  const int all = 2 * microbatches;  // an upper bound for every stage
  for (int stage = 0; stage < stages; ++stage) {
    problem.costs.stages.push_back(costs.of(stage));
    const std::size_t at = memory_units.size() == 1 ? 0 : static_cast<std::size_t>(stage);
    problem.memory_limits.push_back(memory_units.empty() ? all : std::min(all, memory_units[at]));
  }
  return problem;
}

/// Returns the best orders that can be constructed without a search.
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
    std::map<ActionKind, int> next;  // next microbatch by kind
    std::vector<Action> actions;
    for (const ActionKind kind : order)
      actions.push_back({kind, stage, next[kind]++});
    schedule.ranks.push_back(std::move(actions));
  }
  return schedule;
}

}  // namespace

ZeroBubblePlan make_zb_auto(int stages, int microbatches, const ScheduleCosts& costs,
                            const std::vector<int>& memory_units) {
  check_sizes("zb-auto", stages, microbatches);
  check_costs("zb-auto", costs, stages);
  check_memory(memory_units, stages);

  const Problem problem = problem_of(stages, microbatches, costs, memory_units);
  const double bound = zero_bubble::lower_bound(problem);
  const std::vector<Order> orders =
      zero_bubble::anneal(problem, constructed_orders(problem), bound);
  const double span = zero_bubble::Timing(problem).spans(orders).longest;
  return {.schedule = schedule_of(orders, microbatches),
          .longest_span = {span},
          .lower_bound = {std::min(bound, span)}};  // the two may differ by rounding
}

ScheduleDescriptor schedule::zb_auto() {
  return {.name = "zb-auto",
          .takes = "`--costs`, by which it orders its actions; `--memory-units`, a limit per rank",
          .takes_memory_units = true,
          .orders_by_times = true,
          .steps_by_rank = true,
          .named_limits = {{.name = "zb-2p", .microbatches = 2}},
          .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
            const auto limits = r.memory_units ? std::vector{*r.memory_units} : std::vector<int>{};
            ZeroBubblePlan plan = make_zb_auto(r.ranks, r.microbatches, r.costs, limits);
            return {.schedule = std::move(plan.schedule),
                    .bound = GeneratedSchedule::Bound{plan.longest_span, plan.lower_bound}};
          },
          .bubble = {"found by search"},
          .bubble_is_of_span = true,
          .activations = {"by its limit"}};
}

}  // namespace pipewright::plan
