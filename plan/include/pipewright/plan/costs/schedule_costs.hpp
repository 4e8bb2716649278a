#pragma once

// Times of one microbatch on each stage, by which some schedules order their actions.

#include <cstddef>
#include <vector>

#include "pipewright/plan/quantity.hpp"

namespace pipewright::plan {

/// How long one microbatch takes on one stage.
struct PassTimes {
  Seconds forward{};
  Seconds input_gradient{};
  Seconds weight_gradient{};
  friend bool operator==(const PassTimes&, const PassTimes&) = default;
};

/// Times for ordering actions. Only their ratios count, so they may be in any unit.
struct ScheduleCosts {
  std::vector<PassTimes> stages{PassTimes{{1}, {1}, {1}}};  // one per stage, or one for all stages
  Seconds transfer{};  // of an activation or a gradient to another rank; overlaps with compute

  const PassTimes& of(int stage) const {
    return stages.size() == 1 ? stages.front() : stages[static_cast<std::size_t>(stage)];
  }
  friend bool operator==(const ScheduleCosts&, const ScheduleCosts&) = default;
};

/// Returns costs under which all stages take the same times.
inline ScheduleCosts equal_costs(Seconds forward, Seconds input_gradient, Seconds weight_gradient,
                                 Seconds transfer = {}) {
  return {.stages = {PassTimes{forward, input_gradient, weight_gradient}}, .transfer = transfer};
}

}  // namespace pipewright::plan
