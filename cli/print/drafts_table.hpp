#pragma once

// Prints the answer of `pipewright plan SCENARIO` as text and as JSON.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/search/drafts/draft_search.hpp"
#include "pipewright/search/drafts/replan.hpp"

namespace pipewright::cli {

/// The steps to continue a training with another plan.
struct Replan {
  std::vector<search::RankMove> moves;
  double before_s = 0;  // iteration time of the previous plan; 0: unknown
  std::optional<search::StoredStep> from{};
  std::optional<int> repeated_steps{};
};

/// `out` is the folder that was written, `at` the percentile by which plans were chosen, "p95".
/// Both may be empty.
std::string drafts_table(const search::DraftAnswer& answer, const std::optional<Replan>& replan,
                         const std::string& out, const std::string& at = "");
plan::Json drafts_json(const search::DraftAnswer& answer, const std::optional<Replan>& replan,
                       const std::string& at = "");

}  // namespace pipewright::cli
