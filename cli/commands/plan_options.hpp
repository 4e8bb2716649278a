#pragma once

// The options of `pipewright plan`: those of every search, of the search of a model's plans, and of
// a scenario's plans.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/search/planner/search_axes.hpp"

namespace pipewright::cli {

/// The values to try along each axis, as given on the command line.
struct AxisOptions {
  std::vector<int> tensor, pipeline, context, expert, chunks, microbatch, zero;
  std::vector<std::string> recompute, schedules, partition;
  std::string sequence_parallel;  // yes, no, both; empty: not given
};
search::SearchAxes axes_of(const AxisOptions& options);

/// The percentile of iteration times by which plans are chosen.
struct PercentileOptions {
  std::string at;      // "p95"; empty: by the time without jitter
  std::string jitter;  // the file of recorded steps
  std::optional<int> draws;
  std::optional<std::int64_t> seed;
};

/// The options of every search.
struct SearchedOptions {
  AxisOptions axes;
  int top = 10;
  PercentileOptions percentile;
  std::string out;  // the folder for the best plan
};

struct FailureOptions {
  double hours = 0;       // mean, between failures of one GPU; 0: no failures
  double write_rate = 0;  // GB/s of checkpoints, of all GPUs together
  double restart_minutes = 5;
};

/// A transformer model given by its sizes.
struct ModelOptions {
  std::string name;
  bool as_is = false;  // keep the single plan of its arguments
  int batch = 0;
  std::optional<int> sequence;
  std::string precision, attention;  // empty: the default in the help
  std::vector<std::string> overlap;
  bool exhaustive = false;
  bool pareto = false;
  std::string svg;
  int regret = 0;
  int explain = 0;  // the number of a plan
  FailureOptions failures;
};

/// The options of a training that continues after it has lost devices.
struct ReplanOptions {
  bool is_asked = false;
  std::vector<int> lost;
  std::vector<std::string> slow;
  std::string checkpoints;
  std::optional<int> step;
};

/// A scenario, which contains its model and training.
struct ScenarioPlanOptions {
  std::string file;
  std::vector<std::string> assignments;
  std::string costs;
  ReplanOptions replan;
};

struct PlanOptions {
  std::string cluster;
  int gpus = 0;
  bool json = false;
  SearchedOptions search;
  ModelOptions model;
  ScenarioPlanOptions scenario;
};

/// Throws plan::InputError with the first option that the requested mode does not accept or that it
/// lacks. `given` contains the long names of the options on the command line.
void require_fitting(const PlanOptions& options, const std::vector<std::string>& given);

/// Returns "planning: 3 of 40 candidates, best so far 1.234 s with …"; without a plan it ends
/// before ", best so far".
std::string progress_words(std::size_t decided, std::size_t candidates, const std::string& best);

/// Plans a scenario's own model with the costs of its layers. Returns the exit code.
int plan_scenario(const PlanOptions& options);
/// Plans a transformer given by its sizes, on a cluster. Returns the exit code.
int plan_model(const PlanOptions& options);
/// Predicts the single plan given by Megatron's arguments. Returns the exit code.
int plan_as_it_is(const PlanOptions& options);

}  // namespace pipewright::cli
