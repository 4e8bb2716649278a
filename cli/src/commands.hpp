#pragma once

// Each command adds itself to the program: its options, its help, and what it does. The function
// returned by `add_…` runs it and gives the exit code.

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace pipewright::cli {

using Action = std::function<int()>;

Action add_run(CLI::App& program);
Action add_profile(CLI::App& program);
Action add_partition(CLI::App& program);
Action add_schedule(CLI::App& program);
Action add_topology(CLI::App& program);
Action add_simulate(CLI::App& program);
Action add_sweep(CLI::App& program);
Action add_train(CLI::App& program);
Action add_compare(CLI::App& program);

/// The options that every command with a scenario has.
struct ScenarioOptions {
  std::string file;
  std::vector<std::string> assignments;
  std::string data_path;
  bool json = false;
};
/// Adds SCENARIO, --set, --data and --json to `command`.
void add_scenario_options(CLI::App& command, ScenarioOptions& options);

}  // namespace pipewright::cli
