#pragma once

// Explains in words why a rank is idle at a given time. Times may be predicted or measured
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
  double start = 0;                        // of the interval that has this cause, in seconds
  double end = 0;
  /// The events of the chain: first the running event or the next action, then the event that it
  /// waits for, and so on to the event that delays all of them.
  std::vector<int> chain;
};

/// The layer costs from which the sentence names a stage's slowest layer.
struct LayersOfStages {
  const plan::LayerCosts* costs = nullptr;
  const plan::Partition* partition = nullptr;
};

/// Returns what the rank does at `time`. If the rank is idle, the sentence says which action comes
/// next, what it waits for, and what the rank that produces that is doing, from rank to rank up to
/// one that computes. It names the slowest layer of that rank's stage if `layers` are given. Throws
/// InputError for a rank that does not exist or a time outside the iteration.
WhyIdle why_idle(const Structure& structure, const Times& times, int rank, double time,
                 const LayersOfStages& layers = {});

}  // namespace pipewright::sim
