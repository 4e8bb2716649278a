#pragma once

// The options of `pipewright plan`.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/sim/planner/plan_search.hpp"

namespace pipewright::cli {

struct PlanOptions {
  // What is planned: a scenario …
  std::string scenario;
  std::vector<std::string> assignments;
  std::string costs;
  // … or a transformer by its sizes.
  std::string model;
  int batch = 0;
  std::optional<int> sequence;

  std::string cluster;
  int gpus = 0;
  std::vector<int> tensor, pipeline, context, expert, chunks, microbatch, zero;
  std::vector<std::string> recompute, schedules, partition;
  int top = 10;
  bool exhaustive = false;
  bool pareto = false;
  int regret = 0;
  int explain = 0;  // the plan of this number

  bool replan = false;
  std::vector<int> lost;
  std::vector<std::string> slow;
  std::string checkpoints;
  std::optional<int> step;

  std::string out;
  std::string svg;
  bool json = false;
};

/// What only --replan asks about.
inline bool tells_of_trouble(const PlanOptions& options) {
  return !options.lost.empty() || !options.slow.empty() || !options.checkpoints.empty() ||
         options.step.has_value();
}
constexpr const char* trouble_without_replan =
    "--lost, --slow, --checkpoints, --step: are for --replan";

/// Plans of a scenario's own model with the costs of its layers. Gives the exit code.
int plan_scenario(const PlanOptions& options);

}  // namespace pipewright::cli
