#pragma once

// What `pipewright plan` has found, for people and for programs.

#include <optional>
#include <string>

#include "pipewright/draw/chart.hpp"
#include "pipewright/plan/cluster/goodput.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/search/planner/plan_search.hpp"

namespace pipewright::cli {

/// What failures leave of the time, with checkpoints as often as loses least.
struct KeptTime {
  plan::Bytes checkpoint;
  plan::FailureCosts costs{};
  plan::Seconds interval{};  // between checkpoints
  double share = 1;
};

/// What was searched and what was found.
struct PlansFound {
  const plan::Cluster& cluster;
  const plan::TransformerTraining& training;
  const search::PlanAnswer& answer;
  std::optional<search::Regret> regret{};
  std::optional<KeptTime> kept{};  // of the first plan
  std::string at{};                // the percentile that they were chosen by, "p95"; empty: none
};

/// "tp 8, pp 16, dp 8, microbatch 1, 6 chunks, selective recomputation, ZeRO 1, sequence parallel".
std::string plan_words(const plan::TransformerConfig& model, const plan::Cut& cut);
/// … and on which kinds of nodes its ranks are, where there are several.
std::string plan_words(const plan::TransformerTraining& training, const search::FoundPlan& plan);
std::string plans_table(const PlansFound& found);
/// What a layer takes, and what each rank computes and holds; and what the plan before it gains.
std::string plan_explained(const PlansFound& found, std::size_t plan);
/// The plans' times over their memory.
draw::Chart chart_of(const PlansFound& found);
plan::Json to_json(const PlansFound& found);

}  // namespace pipewright::cli
