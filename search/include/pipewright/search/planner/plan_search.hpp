#pragma once

// The fastest plans of a transformer's training that fit a cluster: data, tensor, pipeline, context
// and expert sizes, schedule, chunks, layers of the stages, microbatch size, recomputation, ZeRO
// and sequence parallelism. Every candidate is a cut; it gets its peak memory and a bound that its
// time is proved not to fall below; those that may still be among the best are simulated exactly.
// On a cluster of several kinds of nodes it also chooses which stage goes to which kind, and cuts
// the layers by how fast the kinds are and by what they may hold.

#include <string>
#include <vector>

#include "pipewright/models/allocator/device_memory.hpp"
#include "pipewright/models/transformer/pipeline_shape.hpp"
#include "pipewright/plan/cluster/cluster.hpp"
#include "pipewright/plan/model/transformer_training.hpp"
#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/search/planner/search.hpp"
#include "pipewright/search/planner/search_axes.hpp"
#include "pipewright/sim/structure/step_costs.hpp"

namespace pipewright::search {

/// The training, and the axes of the search. An empty list of sizes means all sizes that divide
/// evenly; `with_defaults` fills the other lists.
struct PlanSpace : SearchAxes {
  plan::TransformerTraining training;
  int gpus = 0;
  bool overlaps_gradients = false;  // sums those of a stage while others still compute
};
/// Returns the space with a context size of 1, all kinds of recomputation, all stages of ZeRO, both
/// sizes of stages, with and without sequence parallelism, and the usual schedules where the list
/// is empty.
PlanSpace with_defaults(PlanSpace space);

struct FoundPlan {
  plan::Cut cut;
  /// The cluster that was searched, its nodes in the order in which the plan's ranks fill them.
  plan::Cluster cluster{};
  double iteration_s = 0;
  double least_s = 0;                // the bound
  double least_bytes = 0;            // … of the peak
  std::vector<plan::Bytes> held{};   // by rank of the pipeline: by tensors, as its scenario has it
  std::vector<plan::Bytes> peaks{};  // by rank of the pipeline: what its device must have
  std::vector<models::DeviceMemory> memory{};  // of a plan that is found: by what takes it
  double peak_bytes = 0;                       // of the rank that holds most
  double evened_bytes = 0;                     // … by what each may hold (plan::evened_peak)
  double bubble = 0;                           // mean over ranks: their idle part of the iteration
  double tokens_per_s = 0;
  double mfu = 0;   // the model's FLOPs over the peak of all GPUs
  double at_s = 0;  // the iteration at a percentile, where somebody has drawn it
};

/// By time and evened memory.
PlanFigures figures_of(const FoundPlan& plan);

using PlanAnswer = SearchAnswer<FoundPlan>;

/// Where ranks are uneven and stages may be balanced, the borders of the leading plans are moved
/// until no move helps (fastest_partition.hpp); `simulated` counts each. Throws plan::InputError
/// where the cluster lacks a figure, or the space a size, or says the speeds of ranks of a pipeline
/// that the space has not.
PlanAnswer search_plans(const plan::Cluster& cluster, const PlanSpace& space,
                        const SearchOptions<FoundPlan>& options = {});

/// Throws plan::InputError where there was nothing to look at: nothing divides the batch.
void require_candidates(const PlanSpace& space, const PlanAnswer& answer);

/// How much the uncertainty of the machine's constants matters to the choice.
struct Regret {
  double mean = 0;        // how much longer the first plan takes than the best of them
  double best_share = 0;  // of the draws in which the first is the best
};
/// Times the plans under `draws` sets of the cluster's constants, drawn by their spreads; the same
/// every time.
Regret regret_of(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                 const std::vector<FoundPlan>& plans, int draws);

/// All candidates on a cluster whose nodes ranks fill as they stand, in the order of the lists.
std::vector<plan::Cut> candidates_of(const plan::Cluster& cluster, const PlanSpace& space,
                                     models::PipelineShapes& shapes);

/// No simulation of the schedule ends before: each rank waits for the first microbatch, then
/// computes all of them and is held by their transfers. Then it steps; where the backward is whole,
/// the ranks before it have one to do.
double least_iteration(const sim::StepCosts& costs, const models::PipelineShape& shape,
                       int microbatches);

}  // namespace pipewright::search
