#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "closed_forms.hpp"
#include "pipewright/plan/error.hpp"
#include "schedules/sizes.hpp"

namespace pipewright::plan {
namespace {

/// The start of each pass, in slots of one F, I or W. A group passes one chunk after the other.
/// Between two chunks lie `rounds` groups, which take half a pipeline, so that a backward finds its
/// rank free.
class GroupSlots {
 public:
  GroupSlots(int ranks, int chunks, int group) : ranks_(ranks), chunks_(chunks), group_(group) {
    const int least = (ranks + 1) / 2;  // microbatches that cover the way down the ranks
    rounds_ = (least + group - 1) / group;
    turn_ = chunks / std::gcd(chunks, rounds_);
  }

  int forward(int chunk, int microbatch, int rank) const {
    return rank + in_row(chunk, microbatch);
  }
  /// Returns the slot of the input gradient. The weight gradient follows it.
  int backward(int chunk, int microbatch, int rank) const {
    const int first = forward(chunks_ - 1, 0, rank) + 3 * (ranks_ - 1 - rank) + 1;
    return first + in_row(chunks_ - 1 - chunk, microbatch);
  }

 private:
  /// Returns the slot on rank 0 of the nth chunk that a group passes. Every `turn_` chunks a slot
  /// would coincide with an earlier one modulo the period, so those chunks run one group later.
  int in_row(int nth, int microbatch) const {
    return 3 * group_ * (rounds_ * nth + nth / turn_ + chunks_ * (microbatch / group_)) +
           3 * (microbatch % group_);
  }

  int ranks_, chunks_, group_;
  int rounds_ = 1;
  int turn_ = 1;
};

Schedule make_group_interleaved(int ranks, int microbatches, int chunks, int group) {
  check_sizes("group-interleaved-1f1b", ranks, microbatches, chunks);
  if (group < 0 || group > ranks)
    throw InputError(fmt::format(
        "group-interleaved-1f1b: groups of {} microbatches asked for; possible are 1 to {}, the "
        "number of ranks",
        group, ranks));
  const GroupSlots slots(ranks, chunks, std::max(group, 1));
  Schedule schedule{.microbatches = microbatches, .ranks = {}};
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<std::pair<int, Action>> placed;
    for (int chunk = 0; chunk < chunks; ++chunk)
      for (int m = 0; m < microbatches; ++m) {
        const int stage = chunk * ranks + rank;
        const int back = slots.backward(chunk, m, rank);
        placed.push_back({slots.forward(chunk, m, rank), {ActionKind::Forward, stage, m}});
        placed.push_back({back, {ActionKind::InputGradient, stage, m}});
        placed.push_back({back + 1, {ActionKind::WeightGradient, stage, m}});
      }
    std::sort(placed.begin(), placed.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    auto& actions = schedule.ranks.emplace_back();
    for (const auto& [slot, action] : placed)
      actions.push_back(action);
  }
  return schedule;
}

}  // namespace

/// Interleaved 1F1B in small groups (zero-bubble's GroupInterleaved1F1B, from the building blocks
/// of Qi et al., "Pipeline Parallelism with Controllable Memory", NeurIPS 2024). Smaller groups
/// keep fewer activations.
ScheduleDescriptor schedule::group_interleaved_1f1b() {
  return {
      .name = "group-interleaved-1f1b",
      .chunks = Chunks::Any,
      .takes = "`--group-size` N, 1 <= N <= P (1 unless given)",
      .takes_group = true,
      .make = [](const ScheduleRequest& r) -> GeneratedSchedule {
        return {make_group_interleaved(r.ranks, r.microbatches, r.chunks, r.group)};
      },
      .bubble = {"the smaller, the larger the group"},
      .activations = {
          .words = "P", .value = [](const ScheduleSizes& s) { return s.ranks; }, .is_limit = true}};
}

}  // namespace pipewright::plan
