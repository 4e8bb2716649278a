#pragma once

// The fastest plans of a draft on so many devices: ranks, replicas, schedule, stages per rank,
// microbatch size, recomputation, ZeRO and the borders of the stages. The batch stays as it is.

#include <string>
#include <vector>

#include "pipewright/search/drafts/what_if.hpp"
#include "pipewright/search/planner/search.hpp"

namespace pipewright::search {

/// What the search chooses between. An empty list: everything that the batch and the model allow,
/// or what the comment says.
struct DraftSpace {
  int devices = 0;  // that may be used; 0: as many as the draft uses
  /// By device, in the order of a job's ranks: how fast it is, so that ranks are put on the
  /// fastest. Empty: as its node's kind says; then the order is chosen in which ranks fill the
  /// kinds, and each rank may hold what its devices have.
  std::vector<double> speeds{};
  std::vector<int> ranks{};
  std::vector<std::string> schedules{};  // empty: all that train and do not search themselves
  std::vector<int> chunks{};             // empty: as few as the schedule has, twice and four times
  std::vector<int> microbatch{};         // samples; empty: the draft's
  std::vector<plan::RecomputeMode> recompute{};  // empty: the draft's
  std::vector<int> zero{};                       // empty: the draft's
  /// Training goes on from a checkpoint with the same bits: microbatches keep their size, and
  /// gradients are added up in the same groups.
  bool keeps_bits = false;
};

/// What the rank with the least room holds, and what its devices may; 0: without an end.
struct FullestRank {
  plan::Bytes held{}, cap{};
};

struct DraftPlan {
  Draft draft;
  std::vector<int> devices;  // of each rank of the job: those that are used, in their order
  Figures figures;
  FullestRank fullest{};
  std::vector<int> boundaries;
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

/// The time of an iteration in which no rank is ever idle: all work of the layers, divided by how
/// fast the scenario's ranks are together. No plan of these layers is faster, whatever the schedule
/// and wherever the borders are. Seconds; 0 where durations jitter.
double iteration_without_bubble(const plan::LayerCosts& costs, const plan::Scenario& scenario);

/// Borders of the best plans are moved until no move helps, which is exact where there are few
/// (sim/fastest_partition.hpp). Throws plan::InputError where the batch cannot be divided at all.
DraftAnswer search_drafts(const Draft& draft, const DraftSpace& space,
                          const DraftSearchOptions& options = {});

/// "3 ranks, zbv, 8 microbatches of 4, layers 5 6 5".
std::string words_of(const DraftPlan& plan);

/// What of `after` is another than in `before`: "ranks 3, schedule zbv"; empty: nothing.
std::string changes_between(const plan::Scenario& before, const plan::Scenario& after);

}  // namespace pipewright::search
