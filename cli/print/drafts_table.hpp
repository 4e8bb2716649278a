#pragma once

// What `pipewright plan SCENARIO` has found, for people and for programs.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/loop/draft_search.hpp"
#include "pipewright/loop/replan.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::cli {

/// What it takes to go on by another plan.
struct Replan {
  std::vector<loop::RankMove> moves;
  double before_s = 0;  // an iteration of the plan that was; 0: not known
  std::optional<loop::StoredStep> from{};
  std::optional<int> repeated_steps{};
};

/// `out`: the folder that was written; `at`: the percentile that plans were chosen by, "p95". Both
/// may be empty.
std::string drafts_table(const loop::DraftAnswer& answer, const std::optional<Replan>& replan,
                         const std::string& out, const std::string& at = "");
plan::Json drafts_json(const loop::DraftAnswer& answer, const std::optional<Replan>& replan,
                       const std::string& at = "");

}  // namespace pipewright::cli
