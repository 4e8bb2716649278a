// Replaces the folder simgrid/ in builds without SimGrid.

#include "pipewright/plan/error.hpp"
#include "pipewright/sim/simgrid/simgrid.hpp"

namespace pipewright::sim {

bool built_with_simgrid() { return false; }

Times simulate_on_simgrid(const Structure&, const StepCosts&, const std::filesystem::path&,
                          DeviceTimes) {
  throw plan::InputError(
      "built without SimGrid: install libsimgrid-dev, configure and build again, or use the native "
      "engine");
}

}  // namespace pipewright::sim
