#pragma once

// What a job makes of a cluster with more levels than two, and with nodes of several kinds: over
// which level its transfers go, and which ranks are slower or faster for their nodes.

#include <string>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/sim/scenario/scenario_plan.hpp"

namespace pipewright::cli {

/// Empty where the cluster has neither.
std::string cluster_table(const sim::ScenarioPlan& plan);
/// `transfers_by_level` and `kind_speeds` (by rank); an empty object likewise.
plan::Json cluster_json(const sim::ScenarioPlan& plan);

}  // namespace pipewright::cli
