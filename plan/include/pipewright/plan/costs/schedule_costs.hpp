#pragma once

// What one microbatch costs each stage: the times that some schedules order their actions by.

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

/// Only the ratios count for the order, so that the times may be in any one unit.
struct ScheduleCosts {
  std::vector<PassTimes> stages{PassTimes{{1}, {1}, {1}}};  // one of each stage, or one for all
  Seconds transfer{};  // takes an activation or a gradient to another rank, beside all compute

  const PassTimes& of(int stage) const {
    return stages.size() == 1 ? stages.front() : stages[static_cast<std::size_t>(stage)];
  }
  friend bool operator==(const ScheduleCosts&, const ScheduleCosts&) = default;
};

/// All stages cost the same.
inline ScheduleCosts equal_costs(Seconds forward, Seconds input_gradient, Seconds weight_gradient,
                                 Seconds transfer = {}) {
  return {.stages = {PassTimes{forward, input_gradient, weight_gradient}}, .transfer = transfer};
}

}  // namespace pipewright::plan
