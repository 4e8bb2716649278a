#pragma once

// Searches the fastest plans of a scenario's training on a number of devices, along the axes of
// every search (search_axes.hpp), the number of replicas and the stage boundaries. The batch does
// not change.

#include <string>
#include <vector>

#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/search/drafts/what_if.hpp"
#include "pipewright/search/planner/search.hpp"
#include "pipewright/search/planner/search_axes.hpp"

namespace pipewright::search {

/// The axes of the search. An empty list of an axis means the draft's own value, with these
/// exceptions: all pipeline sizes that the devices and the layers allow; all training schedules
/// except those that search for the order of their actions; the fewest chunks of the schedule,
/// twice and four times as many; and balanced stages, whose boundaries are then moved. Stages of
/// equal sizes stay equal.
struct DraftSpace : SearchAxes {
  int devices = 0;  // available; 0: as many as the draft uses
  /// The speed of each device, in the order of a job's ranks, so that ranks are placed on the
  /// fastest. Empty: the speed of its kind of node. Then the search also chooses the order in which
  /// ranks fill the kinds, and each rank may use the memory of its devices.
  std::vector<double> speeds{};
  /// True if training continues from a checkpoint with the same bits: microbatches keep their size,
  /// gradients are accumulated in the same groups, and layers stay partitioned as they are.
  bool keeps_bits = false;
};

/// The memory that the rank with the least headroom needs, and its devices' memory (0: unlimited).
struct FullestRank {
  plan::Bytes needed{}, cap{};
};

struct DraftPlan {
  Draft draft;
  std::vector<int> devices;  // the device of each rank of the job, in the order of devices
  Figures figures;
  FullestRank fullest{};
  std::vector<models::DeviceMemory> memory{};  // by rank of a pipeline
  double mfu = 0;                              // 0: the devices' peak is not known
  std::vector<int> boundaries{};
  double at_s = 0;  // the iteration at a percentile, if it was sampled
};

/// Returns the time and memory by which every search compares plans.
PlanFigures figures_of(const DraftPlan& plan);

/// The answer of a search. `too_large` counts candidates that do not fit with any boundaries tried,
/// `bounded` those that are slower with any boundaries; `simulated` counts all boundaries that were
/// tried.
using DraftAnswer = SearchAnswer<DraftPlan>;

struct DraftSearchOptions {
  int most_plans = 10;
  /// Like `SearchOptions::progress`.
  std::function<bool(std::size_t decided, std::size_t candidates, const DraftPlan* best)>
      progress{};
};

/// Returns the time of an iteration in which no rank is ever idle or waits for others of its stage:
/// all work of the layers, divided by the total speed of the scenario's ranks. No plan of these
/// layers is faster, with any schedule and boundaries. In seconds; 0 if durations have jitter.
double iteration_without_bubble(const plan::LayerCosts& costs, const plan::Scenario& scenario);

/// Searches the plans. Boundaries of the best plans are moved until no move helps, which is exact
/// if there are few (sim/scenario/fastest_partition.hpp). Throws plan::InputError if the batch
/// cannot be divided at all. Throws it also for a value of an axis by which the model cannot be
/// partitioned, for which the draft's costs were not measured, or which makes a draft that can be
/// trained untrainable.
DraftAnswer search_drafts(const Draft& draft, const DraftSpace& space,
                          const DraftSearchOptions& options = {});

/// Returns the cut with its layers by stage; the embedding and the head count as layers.
plan::Cut cut_of(const DraftPlan& plan);

/// Returns "tp 1, pp 3, dp 1, microbatch 4, zbv, layers 5 6 5" (plan_words.hpp), and the kinds of
/// nodes of the ranks, if there are several.
std::string words_of(const DraftPlan& plan);

}  // namespace pipewright::search
