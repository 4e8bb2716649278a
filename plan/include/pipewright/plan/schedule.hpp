#pragma once

// A Schedule is, for each rank, the ordered list of its compute actions. For two ranks and three
// microbatches, 1F1B is
//
//   rank 0: 0F0 0F1 0B0 0F2 0B1 0B2      warm-up 0F0, cool-down 0B2
//   rank 1: 1F0 1B0 1F1 1B1 1F2 1B2
//
// A stage is a consecutive part of the model, a microbatch a part of the batch, a rank a worker.

#include <string>
#include <string_view>
#include <vector>

#include "pipewright/plan/action.hpp"
#include "pipewright/plan/placement.hpp"

namespace pipewright::plan {

struct Schedule {
  int microbatches = 0;
  std::vector<std::vector<Action>> ranks;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// The cells of one rank's row: an action each, a fused pair "(1F2;0B1)OVERLAP_F_B" as one.
std::vector<std::string> cells(const std::vector<Action>& actions);

/// One line a rank, cells separated by spaces.
std::string to_string(const Schedule& schedule);

/// torch's compute-only dialect: one row a rank, cells separated by commas.
std::string to_csv(const Schedule& schedule);

/// Reads torch's compute-only dialect; empty cells are idle slots. The number of microbatches is
/// the largest that occurs. Throws MalformedFile `name:row:column: …` with all errors. The result
/// is well-formed text, not yet a sound schedule: `validate` proves that.
Schedule parse_csv(std::string_view text, const std::string& name);

/// The largest stage that occurs, plus one.
int stage_count(const Schedule& schedule);

/// Whether no gradient is computed at all: an inference schedule.
bool is_forward_only(const Schedule& schedule);

/// How many activations, of one microbatch on one stage each, every rank holds at most: from the
/// forward until the weight gradient is done. An inference keeps none but the one at work.
std::vector<int> peak_activations(const Schedule& schedule);
/// The same in the units of the zero-bubble papers: a forward adds 2, I and W free 1 each.
std::vector<int> peak_memory_units(const Schedule& schedule);

/// Which rank runs which stage, as the actions say: a route for each set of microbatches that pass
/// the stages on the same ranks. Where two ranks have actions of one stage and microbatch, the
/// lower rank (`validate` refuses such a schedule); -1 where none has. Throws InputError when a
/// stage or microbatch has so large a number that most of its actions must be missing.
Placement placement_of(const Schedule& schedule);

/// Proves that every rank's list can be run to its end: each microbatch passes each stage exactly
/// once forward and once backward (as B, or as I and then W), on one rank; and no rank waits for
/// ever, when a rank runs its list strictly in order. A schedule without any backward is sound as
/// well: inference. Throws InputError that names rank, action and reason, all errors at once.
void validate(const Schedule& schedule);

/// Each B as I and, right behind it, W. A fused pair with a B comes apart.
Schedule split_backwards(Schedule schedule);
/// Each I with its W right behind it as B.
Schedule merge_backwards(Schedule schedule);
/// Each W takes, of its stage's microbatches on that rank that could have theirs then, the oldest.
/// Gradients are added in the order of microbatches: those of a newer one would be set aside.
Schedule oldest_weight_gradients_first(Schedule schedule);
/// A Recompute right before each backward of the given stages (every stage when empty) that has
/// none, whose forwards then keep their input alone. A backward that is the second of a fused pair
/// comes off it.
Schedule with_recompute(Schedule schedule, const std::vector<int>& stages = {});

}  // namespace pipewright::plan
