#pragma once

// The fastest plans of a draft on so many devices: ranks, replicas, schedule, stages per rank,
// microbatch size, recomputation, ZeRO and the borders of the stages. The batch stays as it is.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pipewright/loop/what_if.hpp"
#include "pipewright/plan/costs/training_memory.hpp"

namespace pipewright::loop {

/// What the search chooses between. An empty list: everything that the batch and the model allow,
/// or what the comment says.
struct DraftSpace {
  int devices = 0;  // that may be used; 0: as many as the draft uses
  /// By device, in the order of a job's ranks: how fast it is. Empty: all 1.
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

struct DraftPlan {
  Draft draft;
  std::vector<int> devices;  // of each rank of the job: those that are used, in their order
  Figures figures;
  std::vector<int> boundaries;
};

struct DraftAnswer {
  std::size_t candidates = 0;
  std::size_t impossible = 0;  // the schedule does not take the sizes, or ranks would deadlock
  std::size_t too_large = 0;   // for a device's memory, with the borders that were tried
  std::size_t bounded = 0;     // slower than the best, wherever the borders lie
  std::size_t simulated = 0;   // plans, each border that was tried included
  double seconds = 0;
  bool interrupted = false;
  std::vector<DraftPlan> plans;  // best first
  /// Of those that would be faster than the best but do not fit, the one that is nearest to
  /// fitting; where nothing fits, the smallest of all.
  std::optional<DraftPlan> too_large_plan;
};

struct DraftSearchOptions {
  int most_plans = 10;
  /// Told how many candidates are done, and the best so far (null: none yet). The search ends with
  /// what it has where it answers false.
  std::function<bool(std::size_t done, std::size_t candidates, const DraftPlan* best)> progress{};
};

/// No plan of these layers on the scenario's ranks is faster, whatever the schedule and wherever
/// the borders are: all their work, divided by how fast the ranks are together. Seconds; 0 where
/// durations jitter.
double least_iteration(const plan::LayerCosts& costs, const plan::Scenario& scenario);

/// Borders of the best plans are moved until no move helps, which is exact where there are few
/// (sim/fastest_partition.hpp). Throws plan::InputError where the batch cannot be divided at all.
DraftAnswer search_drafts(const Draft& draft, const DraftSpace& space,
                          const DraftSearchOptions& options = {});

/// "3 ranks, zbv, 8 microbatches of 4, layers 5 6 5".
std::string words_of(const DraftPlan& plan);

/// What of `after` is another than in `before`: "ranks 3, schedule zbv"; empty: nothing.
std::string changes_between(const plan::Scenario& before, const plan::Scenario& after);

}  // namespace pipewright::loop
