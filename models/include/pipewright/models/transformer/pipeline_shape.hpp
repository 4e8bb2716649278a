#pragma once

// What of a schedule a plan's memory and bounds need: which rank has which stages, and how many
// microbatches of each it holds at once.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::models {

struct PipelineShape {
  std::vector<std::vector<int>> stages_of_rank;  // in rising order
  /// By rank: for each moment at which it holds most, the microbatches of each of its stages that
  /// are kept whole, from the forward on; behind these counts, as many of those that have only
  /// their weight gradient before them. No entry has at most as many of each as another.
  std::vector<std::vector<std::vector<int>>> kept;
  bool splits_backward = false;  // into input and weight gradients
  bool fuses = false;            // forwards with backwards, in pairs
};

/// The schedules that a plan can choose: one direction, one optimizer step, no search of their own.
const std::vector<std::string>& planned_schedules();
/// The planned schedules that a search tries by default.
const std::vector<std::string>& usual_planned_schedules();

/// Beyond 4·P microbatches a rank holds no more, so no more are looked at. Throws InputError where
/// the schedule does not take the sizes; interleaved stages take them by Megatron's rule, whole
/// rounds of P.
PipelineShape pipeline_shape(const std::string& schedule, int ranks, int microbatches, int chunks,
                             int group = 0);
/// The cut's schedule, by the same rule of how many microbatches are looked at.
plan::Schedule shortened_schedule(const plan::Cut& cut, int batch);
/// The shape of a cut of `batch` samples.
PipelineShape pipeline_shape(const plan::Cut& cut, int batch);

/// Shapes that were asked for before.
class PipelineShapes {
 public:
  /// Null where the schedule does not take the sizes.
  const PipelineShape* find(std::string_view schedule, int ranks, int microbatches, int chunks,
                            int group = 0);
  const PipelineShape* find(const plan::Cut& cut, int batch);

 private:
  std::map<std::tuple<std::string, int, int, int, int>, std::optional<PipelineShape>> shapes_;
};

}  // namespace pipewright::models
