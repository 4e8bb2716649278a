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

#include "pipewright/plan/partition/placement.hpp"
#include "pipewright/plan/schedules/action.hpp"

namespace pipewright::plan {

struct Schedule {
  int microbatches = 0;
  std::vector<std::vector<Action>> ranks;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// Returns the cells of one rank's row: one per action; a fused pair "(1F2;0B1)OVERLAP_F_B" is one
/// cell.
std::vector<std::string> cells(const std::vector<Action>& actions);

/// Writes one line per rank, with cells separated by spaces.
std::string to_string(const Schedule& schedule);

/// Writes torch's compute-only CSV format: one row per rank, cells separated by commas.
std::string to_csv(const Schedule& schedule);

/// Reads torch's compute-only CSV format; empty cells are idle slots. The number of microbatches is
/// the largest microbatch plus one. Throws MalformedFile `name:row:column: …` with all errors. The
/// result is well-formed but not yet proved valid; `validate` does that.
Schedule parse_csv(std::string_view text, const std::string& name);

/// Returns the largest stage number in the schedule, plus one.
int stage_count(const Schedule& schedule);

/// Returns true if the schedule computes no gradient at all: an inference schedule.
bool is_forward_only(const Schedule& schedule);

}  // namespace pipewright::plan
