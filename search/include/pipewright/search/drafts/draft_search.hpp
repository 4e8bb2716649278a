#pragma once

// The fastest plans of a scenario's training on a number of devices, along the axes of every search
// (search_axes.hpp), with replicas and the borders of the stages. The batch stays as it is.

#include <string>
#include <vector>

#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/search/drafts/what_if.hpp"
#include "pipewright/search/planner/search.hpp"
#include "pipewright/search/planner/search_axes.hpp"

namespace pipewright::search {

/// An empty list of an axis means the draft's own value, with these exceptions: all pipeline sizes
/// that the devices and the layers allow, all schedules that train and do not search themselves, as
/// few chunks as the schedule has, twice and four times as many, and balanced stages, whose borders
/// are then moved. Stages of equal sizes stay as they are.
struct DraftSpace : SearchAxes {
  int devices = 0;  // that may be used; 0: as many as the draft uses
  /// By device, in the order of a job's ranks: how fast it is, so that ranks are put on the
  /// fastest. Empty: as its node's kind says; then the order is chosen in which ranks fill the
  /// kinds, and each rank may hold what its devices have.
  std::vector<double> speeds{};
  /// Training goes on from a checkpoint with the same bits: microbatches keep their size, gradients
  /// are accumulated in the same groups, and layers stay partitioned as they are.
  bool keeps_bits = false;
};

/// The memory that the rank with the least headroom needs, and its devices' memory (0: unlimited).
struct FullestRank {
  plan::Bytes needed{}, cap{};
};

struct DraftPlan {
  Draft draft;
  std::vector<int> devices;  // of each rank of the job: those that are used, in their order
  Figures figures;
  FullestRank fullest{};
  std::vector<models::DeviceMemory> memory{};  // by rank of a pipeline
  double mfu = 0;                              // 0: the devices' peak is not known
  std::vector<int> boundaries{};
  double at_s = 0;  // the iteration at a percentile, where somebody has drawn it
};

/// By time and memory, as every search holds plans against each other.
PlanFigures figures_of(const DraftPlan& plan);

/// `too_large`: with all the borders that were tried; `bounded`: wherever the borders lie;
/// `simulated` counts each border that was tried.
using DraftAnswer = SearchAnswer<DraftPlan>;

struct DraftSearchOptions {
  int most_plans = 10;
  /// As with `sim::SearchOptions`.
  std::function<bool(std::size_t decided, std::size_t candidates, const DraftPlan* best)>
      progress{};
};

/// The time of an iteration in which no rank is ever idle or waits for others of its stage: all
/// work of the layers, divided by how fast the scenario's ranks are together. No plan of these
/// layers is faster, whatever the schedule and wherever the borders are. Seconds; 0 where durations
/// jitter.
double iteration_without_bubble(const plan::LayerCosts& costs, const plan::Scenario& scenario);

/// Borders of the best plans are moved until no move helps, which is exact where there are few
/// (sim/fastest_partition.hpp). Throws plan::InputError where the batch cannot be divided at all,
/// and for a value of an axis that the model cannot be partitioned by, that no executor trains
/// though it trains the draft, or that the draft's costs were not measured for.
DraftAnswer search_drafts(const Draft& draft, const DraftSpace& space,
                          const DraftSearchOptions& options = {});

/// The cut, with its layers by stage, the ends of the model counted as layers.
plan::Cut cut_of(const DraftPlan& plan);

/// "tp 1, pp 3, dp 1, microbatch 4, zbv, layers 5 6 5" (plan_words.hpp), and on which kinds of
/// nodes the ranks are, where there are several.
std::string words_of(const DraftPlan& plan);

}  // namespace pipewright::search
