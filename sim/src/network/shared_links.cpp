#include "pipewright/sim/network/shared_links.hpp"

#include "fair_network.hpp"
#include "replay.hpp"

namespace pipewright::sim {

Times simulate_shared_links(const Structure& structure, const StepCosts& costs,
                            DeviceTimes device_times) {
  FairNetwork network(costs.cluster, costs.busy_cores);
  return Replay(structure, costs, device_times).run(network);
}

}  // namespace pipewright::sim
