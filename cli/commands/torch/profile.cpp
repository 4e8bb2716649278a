#include "commands/torch/devices.hpp"
#include "commands/torch/torch_commands.hpp"
#include "commands/torch/torch_costs.hpp"
#include "exit_code.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "print/console.hpp"
#include "print/costs_table.hpp"
#include "process/interrupt.hpp"

namespace pipewright::cli {

int profile_scenario(const ProfileOptions& options) {
  if (options.links)
    return profile_links(options);
  const auto scenario = read_scenario(options.scenario);
  open_devices(options.device, scenario.training.cpu_branch);
  const loop::Workload workload(scenario, loop::devices_for(choice_of(options.device), 1, nullptr));
  catch_interrupts();
  const auto costs = measure_costs(scenario, workload, {options.over_s});
  const std::string document = to_json(costs).dump(2) + "\n";
  if (!options.out.empty())
    plan::write_file(options.out, document);
  fmt::print("{}", options.scenario.json ? document : costs_table(costs));
  return Done;
}

}  // namespace pipewright::cli
