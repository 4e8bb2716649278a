#pragma once

// Searches the fastest plans of a transformer's training that fit a cluster: data, tensor,
// pipeline, context and expert sizes, schedule, chunks, layers of the stages, microbatch size,
// recomputation, ZeRO and sequence parallelism. Every candidate is a cut. It gets its peak memory
// and a proven lower bound of its time; candidates that may still be among the best are simulated
// exactly. On a cluster of several kinds of nodes the search also chooses the kind of nodes for
// each stage, and partitions the layers by the speed and memory of the kinds.

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
  bool overlaps_gradients = false;  // a stage's gradients are reduced while others still compute
};
/// Returns the space with a context size of 1, all kinds of recomputation, all stages of ZeRO, both
/// sizes of stages, with and without sequence parallelism, and the usual schedules where the list
/// is empty.
PlanSpace with_defaults(PlanSpace space);

struct FoundPlan {
  plan::Cut cut;
  /// The searched cluster, with its nodes in the order in which the plan's ranks fill them.
  plan::Cluster cluster{};
  double iteration_s = 0;
  double least_s = 0;                // the lower bound
  double least_bytes = 0;            // … of the peak
  std::vector<plan::Bytes> held{};   // by rank of the pipeline: tensors only, as in its scenario
  std::vector<plan::Bytes> peaks{};  // by rank of the pipeline: total need of its device
  std::vector<models::DeviceMemory> memory{};  // of a plan in the answer: the parts of the need
  double peak_bytes = 0;                       // of the rank that holds most
  double evened_bytes = 0;                     // … relative to each rank's memory
                                               // (plan::normalized_peak)
  double bubble = 0;                           // mean over ranks of the idle part of the iteration
  double tokens_per_s = 0;
  double mfu = 0;   // the model's FLOPs over the peak of all GPUs
  double at_s = 0;  // the iteration at a percentile, if it was sampled
};

/// Returns the time and the evened memory.
PlanFigures figures_of(const FoundPlan& plan);

using PlanAnswer = SearchAnswer<FoundPlan>;

/// Searches the plans. If ranks are uneven and stages may be balanced, the boundaries of the
/// leading plans are moved until no move helps (fastest_partition.hpp); `simulated` counts each
/// simulation. Throws plan::InputError if the cluster lacks a figure, the space lacks a size, or
/// the cluster has speeds by rank for a pipeline size that is not in the space.
PlanAnswer search_plans(const plan::Cluster& cluster, const PlanSpace& space,
                        const SearchOptions<FoundPlan>& options = {});

/// Throws plan::InputError if there was no candidate, because nothing divides the batch.
void require_candidates(const PlanSpace& space, const PlanAnswer& answer);

/// The effect of the uncertainty of the machine's constants on the choice.
struct Regret {
  double mean = 0;        // how much longer the first plan takes than the fastest of them
  double best_share = 0;  // fraction of the samples in which the first plan is the fastest
};
/// Times the plans under `draws` sets of the cluster's constants, sampled by their spreads. The
/// samples are the same every time.
Regret regret_of(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                 const std::vector<FoundPlan>& plans, int draws);

/// Returns all candidates on a cluster whose nodes are filled in their given order, in the order of
/// the lists.
std::vector<plan::Cut> candidates_of(const plan::Cluster& cluster, const PlanSpace& space,
                                     models::PipelineShapes& shapes);

/// Returns a lower bound of the schedule's simulated iteration, in seconds. Each rank waits for the
/// first microbatch, then computes all of them and is occupied by their transfers. Then it steps,
/// or, if that takes longer and backwards are not split, each previous rank does its last backward.
double least_iteration(const sim::StepCosts& costs, const models::PipelineShape& shape,
                       int microbatches);

}  // namespace pipewright::search
