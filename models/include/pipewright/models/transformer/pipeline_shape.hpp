#pragma once

// The properties of a schedule that a plan's memory and bounds depend on: the stages of each rank,
// and the number of microbatches in flight per stage.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::models {

/// The most passes (microbatches times stages) of a pipeline that is simulated.
inline constexpr int most_timed_passes = 200'000;

struct PipelineShape {
  std::vector<std::vector<int>> stages_of_rank;  // in ascending order
  /// For each rank, the maximal combinations of microbatches in flight. An entry has one count per
  /// stage of the rank for microbatches with all their activations, from the forward on. Then
  /// follow as many counts for microbatches of which only the weight gradient is outstanding. No
  /// entry is dominated by another.
  std::vector<std::vector<std::vector<int>>> kept;
  bool splits_backward = false;  // into input gradients and weight gradients
  bool fuses = false;            // pairs of a forward and a backward run as one
};

/// Returns the schedules that a plan can choose: unidirectional, with one optimizer step, and
/// without a search of their own.
const std::vector<std::string>& planned_schedules();
/// Returns the planned schedules that a search tries by default.
const std::vector<std::string>& usual_planned_schedules();

/// Returns the shape of a schedule. The number of microbatches is reduced to about 4·P, because a
/// rank holds no more beyond that. Throws InputError if the schedule does not support the sizes;
/// for interleaved stages, Megatron's rule requires whole rounds of P microbatches.
PipelineShape pipeline_shape(const std::string& schedule, int ranks, int microbatches, int chunks,
                             int group = 0);
/// Returns the cut's schedule with a reduced number of microbatches: to about two rounds if a rank
/// has one stage, else by the same rule.
plan::Schedule shortened_schedule(const plan::Cut& cut, int batch);
/// Returns the shape of a cut with a batch of `batch` samples.
PipelineShape pipeline_shape(const plan::Cut& cut, int batch);

/// A cache of shapes.
class PipelineShapes {
 public:
  /// Returns null if the schedule does not support the sizes.
  const PipelineShape* find(std::string_view schedule, int ranks, int microbatches, int chunks,
                            int group = 0);
  const PipelineShape* find(const plan::Cut& cut, int batch);

 private:
  std::map<std::tuple<std::string, int, int, int, int>, std::optional<PipelineShape>> shapes_;
};

}  // namespace pipewright::models
