#include "pipewright/loop/predict/schedule_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/program/program_counts.hpp"
#include "pipewright/plan/schedules/schedule_counts.hpp"
#include "pipewright/sim/scenario/simulate.hpp"

namespace pipewright::loop {
namespace {

std::vector<plan::StageCost> stage_costs(const plan::ScheduleCosts& costs, int stages) {
  const std::size_t given = costs.stages.size();
  if (given != 1 && given != static_cast<std::size_t>(stages))
    throw plan::InputError(fmt::format(
        "--costs: times of {} stages are given, but there are {}: write one time for all, or {}",
        given, stages, stages));
  std::vector<plan::StageCost> all(static_cast<std::size_t>(stages));
  for (int stage = 0; stage < stages; ++stage) {
    plan::StageCost& own = all[static_cast<std::size_t>(stage)];
    static_cast<plan::PassTimes&>(own) = costs.of(stage);
    own.rerun = plan::rerun_at_once(own);
  }
  return all;
}

}  // namespace

plan::Timeline timed(const plan::Program& program, const plan::ScheduleCosts& costs) {
  plan::Cluster cluster;
  cluster.devices_per_node = static_cast<int>(program.ranks.size());
  cluster.within_node.latency = costs.transfer;
  const auto outcome =
      sim::simulate(program, stage_costs(costs, plan::stage_count(program)), cluster);
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
