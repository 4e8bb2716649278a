#include "commands/torch/trainable.hpp"

#include "commands/torch/devices.hpp"
#include "commands/torch/verification.hpp"
#include "pipewright/exec/rank/executor.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"

namespace pipewright::cli {

plan::Scenario read_trainable(const ScenarioOptions& options, const DeviceOptions& device,
                              bool verify) {
  auto scenario = read_scenario(options);
  open_devices(device, scenario.training.cpu_branch);
  plan::require_trainable(scenario);
  const plan::Program program = sim::sound_program(scenario);
  exec::require_trainable(program);
  if (verify)
    require_verifiable(program, scenario);
  return scenario;
}

}  // namespace pipewright::cli
