#include "console.hpp"
#include "devices.hpp"
#include "interrupt.hpp"
#include "pipewright/plan/json_document.hpp"
#include "torch_commands.hpp"
#include "workload.hpp"

namespace pipewright::cli {
namespace {

std::string row(const plan::LayerCost& cost) {
  return fmt::format("{:<14} {:9.3f} {:9.3f} {:9.3f} {:9.3f} {:10.3f} {:10.3f} {:8.3f} {:7.1f}\n",
                     cost.name, 1e3 * cost.forward.value, 1e3 * cost.input_gradient.value,
                     1e3 * cost.weight_gradient.value, 1e3 * cost.optimizer_step.value,
                     static_cast<double>(cost.parameters.value) / 1e6,
                     static_cast<double>(cost.activation.value) / 1e6,
                     static_cast<double>(cost.output.value) / 1e6, 100 * cost.spread);
}

std::string table(const plan::LayerCosts& costs) {
  auto text = fmt::format(
      "{}, {}, microbatches of {}\n{:<14} {:>9} {:>9} {:>9} {:>9} {:>10} {:>10} {:>8} {:>7}\n",
      costs.device, costs.software, costs.microbatch_size, "layer", "forward", "in.grad", "w.grad",
      "step", "parameters", "activation", "output", "spread");
  text += fmt::format("{:<14} {:>9} {:>9} {:>9} {:>9} {:>10} {:>10} {:>8} {:>7}\n", "", "ms", "ms",
                      "ms", "ms", "MB", "MB", "MB", "%");
  for (const plan::LayerCost& cost : costs.layers)
    text += row(cost);
  return text + row(costs.loss);
}

}  // namespace

int profile_scenario(const ProfileOptions& options) {
  const auto scenario = read_scenario(options.scenario);
  open_devices(options.device, scenario.training.cpu_branch);
  const Workload workload(scenario, devices_for(options.device, 1, nullptr));
  catch_interrupts();
  const auto costs = measure_costs(scenario, workload);
  const std::string document = to_json(costs).dump(2) + "\n";
  if (!options.out.empty())
    plan::write_file(options.out, document);
  fmt::print("{}", options.scenario.json ? document : table(costs));
  return Done;
}

}  // namespace pipewright::cli
