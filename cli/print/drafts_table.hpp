#pragma once

// What `pipewright plan SCENARIO` has found, for people and for programs.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/search/drafts/draft_search.hpp"
#include "pipewright/search/drafts/replan.hpp"

namespace pipewright::cli {

/// What it takes to go on by another plan.
struct Replan {
  std::vector<search::RankMove> moves;
  double before_s = 0;  // an iteration of the plan that was; 0: not known
  std::optional<search::StoredStep> from{};
  std::optional<int> repeated_steps{};
};

/// `out`: the folder that was written; `at`: the percentile that plans were chosen by, "p95". Both
/// may be empty.
std::string drafts_table(const search::DraftAnswer& answer, const std::optional<Replan>& replan,
                         const std::string& out, const std::string& at = "");
plan::Json drafts_json(const search::DraftAnswer& answer, const std::optional<Replan>& replan,
                       const std::string& at = "");

}  // namespace pipewright::cli
