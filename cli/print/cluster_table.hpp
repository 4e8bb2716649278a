#pragma once

// Prints a job's use of a cluster with more than two levels, or with nodes of several kinds: the
// number of transfers over each level, and the speed of the ranks.

#include <string>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"

namespace pipewright::cli {

/// Returns an empty string if the cluster has neither.
std::string cluster_table(const sim::ScenarioPlan& plan);
/// Returns `transfers_by_level` and `kind_speeds` (by rank); an empty object if the cluster has
/// neither.
plan::Json cluster_json(const sim::ScenarioPlan& plan);

}  // namespace pipewright::cli
