#pragma once

// Prints the common parts of the answers of all searches, as text and as JSON.

#include <string>
#include <vector>

#include "pipewright/models/allocator/device_memory.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/partition/cut.hpp"
#include "pipewright/plan/scenario/scenario.hpp"
#include "pipewright/search/planner/search.hpp"

namespace pipewright::cli {

/// Returns "49 candidates in 0.09 s, the best after 0.02 s: 14 impossible, 0 too large, 18 proved
/// to be slower, 31 simulated". `is_answered`: there is a best plan.
std::string account_words(const search::SearchAccount& account, bool is_answered);
/// Returns the same counts as JSON, to which the caller adds the plans.
plan::Json account_json(const search::SearchAccount& account);

/// Returns the sizes of a plan along each axis, the boundaries of its stages and the kinds of its
/// ranks.
plan::Json cut_json(const plan::Scenario& scenario, const plan::Cut& cut);

/// Returns one object for each rank.
plan::Json memory_json(const std::vector<models::DeviceMemory>& memory);

}  // namespace pipewright::cli
