#include "commands.hpp"
#include "console.hpp"
#include "device_options.hpp"
#include "interrupt.hpp"
#include "pipewright/plan/json_document.hpp"
#include "workload.hpp"

namespace pipewright::cli {
namespace {

struct ProfileOptions {
  ScenarioOptions scenario;
  DeviceOptions device;
  std::string out;
};

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

int profile(const ProfileOptions& options) {
  open_devices(options.device);
  const auto scenario = read_scenario(options.scenario.file, options.scenario.assignments,
                                      options.scenario.data_path);
  const Workload workload(scenario, devices_for(options.device, 1, nullptr));
  catch_interrupts();
  const auto costs = measure_costs(scenario, workload);
  const std::string document = to_json(costs).dump(2) + "\n";
  if (!options.out.empty())
    plan::write_file(options.out, document);
  fmt::print("{}", options.scenario.json ? document : table(costs));
  return Done;
}

}  // namespace

Action add_profile(CLI::App& program) {
  auto* const command = program.add_subcommand(
      "profile", "Measure what each layer costs on this machine, in time and memory");
  auto options = std::make_shared<ProfileOptions>();
  add_scenario_options(*command, options->scenario);
  add_device_options(*command, options->device);
  command->add_option("-o,--out", options->out, "Write the costs to this file")->type_name("FILE");
  command->footer("Example: pipewright profile scenarios/gpt-text/scenario.json -o costs.json");
  return [options] { return profile(*options); };
}

}  // namespace pipewright::cli
