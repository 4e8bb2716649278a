#include "pipewright/sim/shared_links.hpp"

#include "network/fair_network.hpp"
#include "network/replay.hpp"

namespace pipewright::sim {

Times simulate_shared_links(const Structure& structure, const StepCosts& costs) {
  const Durations works = works_of(structure, costs);
  FairNetwork network(costs.cluster);
  return Replay(structure, works, costs.replicas).run(network);
}

}  // namespace pipewright::sim
