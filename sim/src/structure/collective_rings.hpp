#pragma once

// The rings of a Program's collectives: the ranks of each ring, and the cost of each of its phases.

#include <map>
#include <utility>
#include <vector>

#include "pipewright/sim/structure/durations.hpp"

namespace pipewright::sim {

/// A cache of the ring phases of collectives. Collectives of equal cost share theirs.
class CollectiveRings {
 public:
  /// Both arguments must outlive it.
  CollectiveRings(const Structure& structure, const StepCosts& costs)
      : structure_(structure), costs_(costs) {}

  /// Like ring_phases. The answer is valid as long as this object.
  const std::vector<RingPhase>& of(int leader, int member) {
    const int group =
        member % collective_groups(costs_, structure_.events()[leader].instruction->kind);
    const auto [known, is_new] = phases_.try_emplace({structure_.class_of(leader), group});
    if (is_new)
      known->second = ring_phases(structure_, costs_, leader, group);
    return known->second;
  }

 private:
  const Structure& structure_;
  const StepCosts& costs_;
  std::map<std::pair<int, int>, std::vector<RingPhase>> phases_;  // by class and group
};

}  // namespace pipewright::sim
