#pragma once

// Times a schedule for stages of given times, with a given transfer time between ranks.

#include <algorithm>
#include <limits>
#include <string>

#include "pipewright/plan/lower/lower.hpp"
#include "pipewright/sim/scenario/simulate.hpp"
#include "support/catch.hpp"
#include "support/make_schedule.hpp"

namespace pipewright::test {

inline plan::Timeline timed(const plan::Schedule& schedule, const plan::ScheduleCosts& times) {
  std::vector<plan::StageCost> costs(static_cast<std::size_t>(plan::stage_count(schedule)));
  for (std::size_t stage = 0; stage < costs.size(); ++stage)
    static_cast<plan::PassTimes&>(costs[stage]) = times.of(static_cast<int>(stage));
  plan::Cluster cluster;
  cluster.devices_per_node = static_cast<int>(schedule.ranks.size());
  cluster.within_node = {.latency = times.transfer,
                         .bandwidth_per_s = std::numeric_limits<double>::infinity(),
                         .shared = false};
  const auto outcome = sim::simulate(plan::lower(schedule), costs, cluster);
  if (const auto* deadlock = std::get_if<sim::Deadlock>(&outcome))
    FAIL(deadlock->cycle);
  return std::get<sim::Completed>(outcome).timeline;
}

/// Returns the same for equal stages.
inline plan::Timeline timed(const plan::Schedule& schedule, double forward, double input_gradient,
                            double weight_gradient, double transfer = 0) {
  return timed(schedule,
               plan::equal_costs({forward}, {input_gradient}, {weight_gradient}, {transfer}));
}

}  // namespace pipewright::test
