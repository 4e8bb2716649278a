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

namespace pipewright::plan {

struct Schedule {
  int microbatches = 0;
  std::vector<std::vector<Action>> ranks;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// One line a rank, actions separated by spaces.
std::string to_string(const Schedule& schedule);

/// torch's dialect: one row a rank, actions separated by commas.
std::string to_csv(const Schedule& schedule);

/// Reads torch's dialect; empty cells are idle slots. The number of microbatches is the largest
/// that occurs. Throws InputError `name:row:column: …` with all errors. The result is well-formed
/// text, not yet a sound schedule: `validate` proves that.
Schedule parse_csv(std::string_view text, const std::string& name);

/// The largest stage that occurs, plus one.
int stage_count(const Schedule& schedule);

/// The rank that runs each stage; -1 where no rank does. When two ranks run parts of one stage, the
/// lower one (`validate` refuses such a schedule).
std::vector<int> rank_of_stage(const Schedule& schedule);

/// Proves that every rank's list can be run to its end: each stage lives on one rank; each
/// microbatch passes each stage exactly once forward and once backward (as B, or as I and then W);
/// and no rank waits for ever, when a rank runs its list strictly in order.
/// Throws InputError that names rank, action and reason, all errors at once.
void validate(const Schedule& schedule);

}  // namespace pipewright::plan
