#pragma once

// Devices whose memory is too small: a message that says what fills them, and the smallest single
// change of the scenario with which the plan would fit.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/sim/memory/memory.hpp"

namespace pipewright::sim {

/// A rank that holds more than its device has.
struct MemoryExcess {
  int rank = 0;
  plan::Bytes peak;
  plan::Bytes cap;
  double time = 0;              // seconds
  std::string action;           // runs at the peak, or ran last: "2F5"
  std::vector<Holder> largest;  // up to three
};

/// Returns the rank that exceeds its memory on this cluster by most; nothing if all ranks fit.
/// `needs` is the memory that each rank's device needs.
std::optional<MemoryExcess> over_cap(const Structure& structure, const MemoryModel& model,
                                     const MemoryCurves& curves, const StepCosts& costs,
                                     const Times& times, const plan::Cluster& cluster,
                                     const std::vector<plan::Bytes>& needs);
bool fits(const std::vector<plan::Bytes>& needs, const plan::Cluster& cluster);

/// "rank 0 needs 40.0 MB at 0F3 (1.250 s), but there are 32.0 MB: optimizer state 20.0 MB, …"
std::string to_string(const MemoryExcess& over);

/// Rejects a cap below a rank's standing memory: no order of the actions could fit. Throws
/// InputError with parameters, gradients and optimizer state.
void require_cap_above_standing(const plan::Program& program,
                                const std::vector<plan::StageCost>& costs,
                                const plan::Cluster& cluster);

/// Returns single fields to set that may need less memory and leave the trained weights unchanged,
/// such as "training.recompute=full". Some of them may be impossible.
std::vector<std::string> leaner_changes(const plan::Scenario& scenario);

/// The memory and time that a scenario needs.
struct Need {
  plan::Bytes peak;  // of the rank that holds most
  plan::Seconds iteration;
  bool fits = true;
};

struct Remedy {
  std::string assignment;  // "training.recompute=selective"
  Need need;
};

/// Returns the fastest of the changes that fit; nothing if none does. `evaluate` returns nothing
/// for a change that cannot be planned.
std::optional<Remedy> smallest_change(
    const std::vector<std::string>& changes,
    const std::function<std::optional<Need>(const std::string& assignment)>& evaluate);

/// Returns the whole error message: what is too large, and what would fit.
std::string refusal(const MemoryExcess& over, const std::optional<Remedy>& remedy);

}  // namespace pipewright::sim
