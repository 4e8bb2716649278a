#pragma once

// A scenario on the command line: its file, and the options that change it.

#include <string>
#include <vector>

#include "options/command_line/command.hpp"
#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::cli {

/// The options of every command with a scenario.
struct ScenarioOptions {
  std::string file;
  std::vector<std::string> assignments;
  std::string data_path;
  std::string cluster;   // a file; empty: the scenario's own
  std::string schedule;  // a file; empty: the scenario's own
  std::string cut{};     // a file of another trainer; empty: the scenario's own
  bool json = false;
};

/// Returns SCENARIO, --set, --data, --cluster, --schedule, --cut and --json, followed by the
/// command's other options.
std::vector<Option> with_scenario(ScenarioOptions& options, std::vector<Option> others);

/// Returns the scenario's file as JSON, including the cluster from its file or option, --schedule
/// and --cut.
plan::JsonDocument read_document(const ScenarioOptions& options);
/// Returns the scenario of that JSON after applying --set in order.
plan::Scenario read_scenario(const ScenarioOptions& options);

}  // namespace pipewright::cli
