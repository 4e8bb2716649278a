#include "pipewright/loop/schedule_figures.hpp"

#include <fmt/format.h>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/program/program_counts.hpp"
#include "pipewright/plan/schedules/schedule_counts.hpp"
#include "pipewright/sim/simulate.hpp"

namespace pipewright::loop {
namespace {

void check_count(const std::vector<double>& list, int stages, const char* what) {
  if (list.size() != 1 && list.size() != static_cast<std::size_t>(stages))
    throw plan::InputError(fmt::format("--costs: {} {} times are given, but there are {} stages",
                                       list.size(), what, stages));
}

std::vector<plan::StageCost> stage_costs(const plan::ActionTimes& times, int stages) {
  check_count(times.forward, stages, "forward");
  check_count(times.input_gradient, stages, "input gradient");
  check_count(times.weight_gradient, stages, "weight gradient");
  std::vector<plan::StageCost> costs(static_cast<std::size_t>(stages));
  for (int stage = 0; stage < stages; ++stage) {
    plan::StageCost& cost = costs[static_cast<std::size_t>(stage)];
    cost.forward = {plan::ActionTimes::of(times.forward, stage)};
    cost.input_gradient = {plan::ActionTimes::of(times.input_gradient, stage)};
    cost.weight_gradient = {plan::ActionTimes::of(times.weight_gradient, stage)};
  }
  return costs;
}

}  // namespace

plan::Timeline timed(const plan::Program& program, const plan::ActionTimes& times) {
  plan::Cluster cluster;
  cluster.devices_per_node = static_cast<int>(program.ranks.size());
  cluster.within_node.latency = {times.transfer};
  const auto outcome =
      sim::simulate(program, stage_costs(times, plan::stage_count(program)), cluster);
  if (const auto* deadlock = std::get_if<sim::Deadlock>(&outcome))
    throw plan::Infeasible(deadlock->cycle);
  return std::get<sim::Completed>(outcome).timeline;
}

plan::Json figures(const plan::Schedule& schedule, const plan::Program& program,
                   const plan::Timeline& timeline) {
  plan::Json bubble = plan::Json::array();
  for (const plan::Seconds b : plan::bubble_per_rank(timeline))
    bubble.push_back(b.value);
  return {{"iteration_time", timeline.length.value},
          {"longest_stage_span", plan::longest_span(timeline).value},
          {"bubble", bubble},
          {"peak_activations", plan::peak_activations(schedule)},
          {"memory_units", plan::peak_memory_units(schedule)},
          {"weight_versions", plan::weight_versions(program)},
          {"slots", plan::slot_counts(program)},
          {"receive_slots", plan::receive_slots(program)}};
}

}  // namespace pipewright::loop
