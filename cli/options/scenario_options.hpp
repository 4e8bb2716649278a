#pragma once

// A scenario on the command line: its file, and what the options change in it.

#include <string>
#include <vector>

#include "options/command_line/command.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::cli {

/// The options that every command with a scenario takes.
struct ScenarioOptions {
  std::string file;
  std::vector<std::string> assignments;
  std::string data_path;
  std::string cluster;   // a file; empty: the scenario's own
  std::string schedule;  // a file; empty: the scenario's own
  std::string cut{};     // a file of another trainer; empty: the scenario's own
  bool json = false;
};

/// SCENARIO, --set, --data, --cluster, --schedule, --cut and --json, and behind them what else the
/// command takes.
std::vector<Option> with_scenario(ScenarioOptions& options, std::vector<Option> others);

/// The scenario's file as JSON, with the cluster put in, wherever that is from, --schedule and
/// --cut.
plan::JsonDocument read_document(const ScenarioOptions& options);
/// The scenario of that JSON, with the assignments of --set made in their order.
plan::Scenario read_scenario(const ScenarioOptions& options);

}  // namespace pipewright::cli
