#pragma once

// The fastest plans of a training that fit a cluster: data, tensor, pipeline, context and expert
// sizes, schedule, chunks, layers of the stages, microbatch size, recomputation, ZeRO and sequence
// parallelism. Every candidate
// gets its peak memory and a bound that its time is proved not to fall below; those that may still
// be among the best are simulated exactly.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/cluster/cluster.hpp"
#include "pipewright/plan/runs/pipeline_shape.hpp"
#include "pipewright/plan/runs/training_run.hpp"
#include "pipewright/sim/structure/step_costs.hpp"

namespace pipewright::sim {

/// How layers are dealt out to stages: all have as many, or those with the embedding and the head
/// have fewer and none divides anything.
enum class StageSizes { Equal, Balanced };

/// What is trained, and between what the search chooses. An empty list: all values that divide what
/// they have to.
struct PlanSpace {
  /// The model, `gpus`, `global_batch` and `sequence`; how it is cut is chosen.
  plan::TrainingRun model;
  std::vector<int> tensor, pipeline, context{1}, expert, chunks, microbatch;
  std::vector<plan::RunRecompute> recompute{plan::RunRecompute::None, plan::RunRecompute::Selective,
                                            plan::RunRecompute::Full};
  std::vector<int> zero{0, 1};
  std::vector<std::string> schedules{"1f1b", "interleaved-1f1b", "zb-h1", "zbv"};
  std::vector<StageSizes> stage_sizes{StageSizes::Equal, StageSizes::Balanced};
  std::vector<bool> sequence_parallel{false, true};
};

struct FoundPlan {
  plan::TrainingRun run;
  double iteration_s = 0;
  double least_s = 0;     // the bound
  double peak_bytes = 0;  // of the rank that holds most
  double bubble = 0;      // of the rank that computes most: its idle part of the iteration
  double tokens_per_s = 0;
  double mfu = 0;  // the model's FLOPs over the peak of all GPUs
};

struct PlanAnswer {
  std::size_t candidates = 0;
  std::size_t too_large = 0;  // for a device's memory
  std::size_t bounded = 0;    // proved to be slower than the best
  std::size_t simulated = 0;
  double seconds = 0;
  bool interrupted = false;
  std::vector<FoundPlan> plans;  // best first
  /// Of those that would be faster than the best but do not fit, the one that is nearest to
  /// fitting.
  std::optional<FoundPlan> too_large_but_faster;
  /// Where nothing fits: what needs least memory.
  std::optional<FoundPlan> smallest;
};

struct SearchOptions {
  int most_plans = 10;
  /// Instead of the fastest: all plans than which none is faster with as little memory.
  bool pareto = false;
  /// No candidate is spared by its bound: the same answer, later.
  bool exhaustive = false;
  /// Told now and then how many candidates are done, and the best so far (null: none yet). The
  /// search ends with what it has where it answers false.
  std::function<bool(std::size_t done, std::size_t candidates, const FoundPlan* best)> progress{};
};

/// Throws plan::InputError where the cluster lacks a figure, or nothing divides the batch.
PlanAnswer search_plans(const plan::Cluster& cluster, const PlanSpace& space,
                        const SearchOptions& options = {});

/// How much the uncertainty of the machine's constants matters to the choice.
struct Regret {
  double mean = 0;        // how much longer the first plan takes than the best of them
  double best_share = 0;  // of the draws in which the first is the best
};
/// Times the plans under `draws` sets of constants, drawn by their spreads; the same every time.
Regret regret_of(const plan::Cluster& cluster, const std::vector<FoundPlan>& plans, int draws);

/// All candidates, in the order of the lists.
std::vector<plan::TrainingRun> candidates_of(const plan::Cluster& cluster, const PlanSpace& space,
                                             plan::PipelineShapes& shapes);

/// No simulation of the schedule ends before: each rank waits for the first microbatch and computes
/// all of them. Then it steps; where the backward is whole, the ranks before it have one to do.
double least_iteration(const StepCosts& costs, const plan::PipelineShape& shape, int microbatches);

/// FLOPs of an iteration, forward and backward, nothing run again: 6 for each parameter that a
/// token meets and 12 · layers · heads · channels · sequence for attention's scores, each times
/// tokens (Narayanan et al., arXiv 2104.04473, appendix; without its recomputation).
double model_flops(const plan::TrainingRun& run);

}  // namespace pipewright::sim
