#pragma once

// What `pipewright plan` has found, for people and for programs.

#include <optional>
#include <string>

#include "pipewright/draw/chart.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/sim/planner/plan_search.hpp"

namespace pipewright::cli {

/// "tp 8, pp 16, dp 8, microbatch 1, 6 chunks, selective recomputation, ZeRO 1, sequence parallel".
std::string words_of(const plan::TrainingRun& run);
std::string plans_table(const plan::Cluster& cluster, const sim::PlanAnswer& answer,
                        const std::optional<sim::Regret>& regret);
/// What a layer takes, and what each rank computes and holds; and what the plan before it gains.
std::string plan_explained(const plan::Cluster& cluster, const sim::PlanAnswer& answer,
                           std::size_t plan);
/// The plans' times over their memory.
draw::Chart chart_of(const sim::PlanAnswer& answer);
plan::Json to_json(const plan::Cluster& cluster, const sim::PlanAnswer& answer,
                   const std::optional<sim::Regret>& regret);

}  // namespace pipewright::cli
