#pragma once

// When a device is too small: who fills it, in words, and with which single change of the scenario
// the plan would fit.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/sim/memory/memory.hpp"

namespace pipewright::sim {

/// A rank that holds more than its device has.
struct OverCap {
  int rank = 0;
  plan::Bytes peak;
  plan::Bytes cap;
  double time = 0;              // seconds
  std::string action;           // that runs at the peak, or ran last: "2F5"
  std::vector<Holder> largest;  // up to three
};

/// The rank that is furthest above what it may hold on that cluster; nothing when all are within.
/// `needs`: what each rank's device must have.
std::optional<OverCap> over_cap(const Structure& structure, const MemoryModel& model,
                                const MemoryCurves& curves, const StepCosts& costs,
                                const Times& times, const plan::Cluster& cluster,
                                const std::vector<plan::Bytes>& needs);
bool fits(const std::vector<plan::Bytes>& needs, const plan::Cluster& cluster);

/// "rank 0 needs 40.0 MB at 0F3 (1.250 s), but there are 32.0 MB: optimizer state 20.0 MB, …"
std::string to_string(const OverCap& over);

/// Refuses a cap that is below what stands on a rank throughout: no order of the work could fit.
/// Throws InputError with parameters, gradients and optimizer state.
void require_cap_above_standing(const plan::Program& program,
                                const std::vector<plan::StageCost>& costs,
                                const plan::Cluster& cluster);

/// Single fields to set that may need less memory and leave the trained weights as they are, such
/// as "training.recompute=full". Not all of them need be possible.
std::vector<std::string> leaner_changes(const plan::Scenario& scenario);

/// What a scenario would need and take.
struct Need {
  plan::Bytes peak;  // of the rank that holds most
  plan::Seconds iteration;
  bool fits = true;
};

struct Remedy {
  std::string assignment;  // "training.recompute=selective"
  Need need;
};

/// The quickest of the changes that fit; nothing when none does. `evaluate` answers nothing for a
/// change that cannot be planned.
std::optional<Remedy> smallest_change(
    const std::vector<std::string>& changes,
    const std::function<std::optional<Need>(const std::string& assignment)>& evaluate);

/// The refusal as a whole: what is too much, and what would fit.
std::string refusal(const OverCap& over, const std::optional<Remedy>& remedy);

}  // namespace pipewright::sim
