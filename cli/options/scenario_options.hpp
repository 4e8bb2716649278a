#pragma once

#include <string>
#include <vector>

#include "options/command_line/command.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::cli {

/// What every command with a scenario is told.
struct ScenarioOptions {
  std::string file;
  std::vector<std::string> assignments;
  std::string data_path;
  std::string cluster;  // a file; empty: the scenario's own
  bool json = false;
};

/// SCENARIO, --set, --data, --cluster and --json, and behind them what else the command takes.
std::vector<Option> with_scenario(ScenarioOptions& options, std::vector<Option> others);

/// The file with the cluster put in, wherever that is from.
plan::JsonDocument read_document(const ScenarioOptions& options);
/// The same with the assignments applied the assignments in their order.
plan::Scenario read_scenario(const ScenarioOptions& options);

}  // namespace pipewright::cli
