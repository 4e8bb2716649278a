#pragma once

// What `pipewright plan` is told, and which of it is for a model by its sizes, which for a
// scenario.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipewright::cli {

struct PlanOptions {
  // What is planned: a scenario …
  std::string scenario;
  std::vector<std::string> assignments;
  std::string costs;
  // … or a transformer by its sizes.
  std::string model;
  bool as_is = false;  // how its arguments cut it
  int batch = 0;
  std::optional<int> sequence;

  std::string cluster;
  int gpus = 0;
  std::vector<int> tensor, pipeline, context, expert, chunks, microbatch, zero;
  std::vector<std::string> recompute, schedules, partition;
  std::string precision, attention, sequence_parallel;  // empty: as the help says
  std::vector<std::string> overlap;
  int top = 10;
  bool exhaustive = false;
  bool pareto = false;
  int regret = 0;
  int explain = 0;           // the plan of this number
  double failure_hours = 0;  // mean, between failures of one GPU; 0: nothing fails
  double write_rate = 0;     // GB/s of checkpoints, of all GPUs together
  double restart_minutes = 5;

  bool replan = false;
  std::vector<int> lost;
  std::vector<std::string> slow;
  std::string checkpoints;
  std::optional<int> step;

  std::string at;      // "p95"; empty: by the time without jitter
  std::string jitter;  // what was recorded
  std::optional<int> draws;
  std::optional<std::int64_t> seed;

  std::string out;
  std::string svg;
  bool json = false;
};

/// Throws plan::InputError with the first option that says nothing for what is planned, or that is
/// missing for it.
void require_fitting(const PlanOptions& options);

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
