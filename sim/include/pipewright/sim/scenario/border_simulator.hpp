#pragma once

// A scenario's iteration and memory with whatever borders of its stages: for searches that move
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

class BorderSimulator {
 public:
  /// `scenario` must outlive it. Throws as `lay_out` does; what is too large is measured, not
  /// refused.
  BorderSimulator(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                  StructureCache& structures);

  /// Those that the scenario says.
  const std::vector<int>& boundaries() const { return plan_.partition.boundaries; }
  /// The peak is evened: to be held against the largest memory that a rank has (even_memory.hpp).
  /// Of what takes longer than `most_s` seconds the time alone.
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
