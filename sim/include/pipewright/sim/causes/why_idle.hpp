#pragma once

// Why a rank stands still at an instant, in words. Times may be predicted or measured
// (measured_times.hpp).

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/partition/partition.hpp"
#include "pipewright/sim/structure/times.hpp"

namespace pipewright::sim {

struct WhyIdle {
  std::string sentence;
  std::optional<plan::IdleCause> cause{};  // nothing: the rank computes
  double start = 0;                        // of the stretch that has this cause, in seconds
  double end = 0;
  /// The events of the chain: first what runs, or the action that comes next; then what that waits
  /// for, and so on to what holds all of them back.
  std::vector<int> chain;
};

/// What the sentence may say of the layers of a stage.
struct LayersOfStages {
  const plan::LayerCosts* costs = nullptr;
  const plan::Partition* partition = nullptr;
};

/// What the rank does then or, when it is idle, which action comes next, what that waits for, and
/// what the rank that makes it does meanwhile, from rank to rank up to one that computes; of that
/// one's stage the slowest layer, where `layers` are given. Throws InputError for a rank that does
/// not exist or a time outside the iteration.
WhyIdle why_idle(const Structure& structure, const Times& times, int rank, double time,
                 const LayersOfStages& layers = {});

}  // namespace pipewright::sim
