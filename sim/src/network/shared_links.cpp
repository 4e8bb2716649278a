#include "pipewright/sim/network/shared_links.hpp"

#include "fair_network.hpp"
#include "replay.hpp"

namespace pipewright::sim {

Times simulate_shared_links(const Structure& structure, const StepCosts& costs) {
  const CopyWorks works = works_of(structure, costs);
  FairNetwork network(costs.cluster, costs.busy_cores);
  if (costs.contended.empty())
    return Replay(structure, works, costs).run(network);
  const CopyWorks contended = contended_works_of(structure, costs);
  return Replay(structure, works, costs, &contended).run(network);
}

}  // namespace pipewright::sim
