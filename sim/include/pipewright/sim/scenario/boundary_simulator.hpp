#pragma once

// Simulates a scenario's iteration and memory with any stage boundaries, for searches that move
// them.

#include <limits>
#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "pipewright/sim/memory/memory.hpp"
#include "pipewright/sim/scenario/fastest_partition.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"

namespace pipewright::sim {

class BoundarySimulator {
 public:
  /// `scenario` must outlive it. Throws as `lay_out` does, but a plan that exceeds the memory is
  /// measured, not rejected.
  BoundarySimulator(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                    StructureCache& structures);

  /// Returns the scenario's own boundaries.
  const std::vector<int>& boundaries() const { return plan_.partition.boundaries; }
  /// Returns the iteration time and the evened peak, to be compared with the largest memory of a
  /// rank (even_memory.hpp). If the iteration takes longer than `most_s` seconds, only the time is
  /// known.
  PartitionNeed need(const std::vector<int>& boundaries,
                     double most_s = std::numeric_limits<double>::infinity());
  const plan::Program& program() const { return plan_.program(); }
  int layers() const { return static_cast<int>(shard_costs_.layers.size()); }

 private:
  const plan::Scenario& scenario_;
  const ScenarioPlan plan_;
  const plan::LayerCosts shard_costs_;
  StepCosts step_;
  const std::vector<plan::Bytes> caps_;  // by rank
  const plan::Bytes largest_;
  Simulator simulator_;
  MemoryModel memory_;
};

}  // namespace pipewright::sim
