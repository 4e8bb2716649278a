#pragma once

// The options of `pipewright plan`, by what takes them: every search, the search of a model's plans
// or that of a scenario's.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/search/planner/search_axes.hpp"

namespace pipewright::cli {

/// The values to try along each axis, in the words of the command line.
struct AxisOptions {
  std::vector<int> tensor, pipeline, context, expert, chunks, microbatch, zero;
  std::vector<std::string> recompute, schedules, partition;
  std::string sequence_parallel;  // yes, no, both; empty: not given
};
search::SearchAxes axes_of(const AxisOptions& options);

/// Plans are chosen by a percentile of their iterations.
struct PercentileOptions {
  std::string at;      // "p95"; empty: by the time without jitter
  std::string jitter;  // the file of recorded steps
  std::optional<int> draws;
  std::optional<std::int64_t> seed;
};

/// Every search takes these.
struct SearchedOptions {
  AxisOptions axes;
  int top = 10;
  PercentileOptions percentile;
  std::string out;  // the folder for the best plan
};

struct FailureOptions {
  double hours = 0;       // mean, between failures of one GPU; 0: nothing fails
  double write_rate = 0;  // GB/s of checkpoints, of all GPUs together
  double restart_minutes = 5;
};

/// A transformer by its sizes.
struct ModelOptions {
  std::string name;
  bool as_is = false;  // its arguments say the one plan
  int batch = 0;
  std::optional<int> sequence;
  std::string precision, attention;  // empty: as the help says
  std::vector<std::string> overlap;
  bool exhaustive = false;
  bool pareto = false;
  std::string svg;
  int regret = 0;
  int explain = 0;  // the plan of this number
  FailureOptions failures;
};

/// The training goes on after it has lost devices.
struct ReplanOptions {
  bool is_asked = false;
  std::vector<int> lost;
  std::vector<std::string> slow;
  std::string checkpoints;
  std::optional<int> step;
};

/// A scenario, which says its model and how it is trained.
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

/// Throws plan::InputError with the first option that what is planned does not take, or that is
/// missing for it. `given`: the long names of the options on the command line.
void require_fitting(const PlanOptions& options, const std::vector<std::string>& given);

/// "planning: 3 of 40 candidates, best so far 1.234 s with …": the words behind "best so far" are
/// empty while there is no plan.
std::string progress_words(std::size_t decided, std::size_t candidates, const std::string& best);

/// Plans of a scenario's own model with the costs of its layers. Gives the exit code.
int plan_scenario(const PlanOptions& options);
/// Plans of a transformer by its sizes, on a cluster. Likewise.
int plan_model(const PlanOptions& options);
/// The one plan that Megatron's arguments say. Likewise.
int plan_as_it_is(const PlanOptions& options);

}  // namespace pipewright::cli
