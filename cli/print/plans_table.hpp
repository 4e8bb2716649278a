#pragma once

// Prints the answer of `pipewright plan` as text and as JSON.

#include <optional>
#include <string>

#include "pipewright/draw/chart.hpp"
#include "pipewright/plan/cluster/goodput.hpp"
#include "pipewright/plan/json/json.hpp"
#include "pipewright/search/planner/plan_search.hpp"

namespace pipewright::cli {

/// The goodput under failures, with the best checkpoint interval.
struct KeptTime {
  plan::Bytes checkpoint;
  plan::FailureCosts costs{};
  plan::Seconds interval{};  // between checkpoints
  double share = 1;
};

/// The searched space and the plans found.
struct PlansFound {
  const plan::Cluster& cluster;
  const plan::TransformerTraining& training;
  const search::PlanAnswer& answer;
  std::optional<search::Regret> regret{};
  std::optional<KeptTime> kept{};  // of the first plan
  std::string at{};                // the percentile by which plans were chosen, "p95"; empty: none
};

/// Returns "tp 8, pp 16, dp 8, microbatch 1, 6 chunks, selective recomputation, ZeRO 1, sequence
/// parallel".
std::string plan_words(const plan::TransformerConfig& model, const plan::Cut& cut);
/// Returns the same, and the kinds of nodes of its ranks if there are several.
std::string plan_words(const plan::TransformerTraining& training, const search::FoundPlan& plan);
std::string plans_table(const PlansFound& found);
/// Returns the time of a layer, the compute and memory of each rank, and the gain of the next
/// faster plan.
std::string plan_explained(const PlansFound& found, std::size_t plan);
/// Returns a chart of the plans' times over their memory.
draw::Chart chart_of(const PlansFound& found);
plan::Json to_json(const PlansFound& found);

}  // namespace pipewright::cli
