#pragma once

// The shipped scenario of four nodes with one card each, as a draft.

#include <string>
#include <variant>
#include <vector>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/search/drafts/what_if.hpp"
#include "support/catch.hpp"

namespace pipewright::test {

inline search::Draft shared_card(const std::vector<std::string>& assignments = {}) {
  const std::string folder = PIPEWRIGHT_SOURCE_DIR "/scenarios/shared-card/";
  auto document = plan::JsonDocument::read(folder + "scenario.json");
  for (const std::string& assignment : assignments)
    document.set(assignment);
  return {plan::scenario_from_json(document),
          plan::layer_costs_from_json(plan::JsonDocument::read(folder + "costs.json"))};
}

inline search::Answer answered(const std::variant<search::Answer, search::Refusal>& outcome) {
  if (const auto* refusal = std::get_if<search::Refusal>(&outcome))
    FAIL(refusal->text);
  return std::get<search::Answer>(outcome);
}

inline search::Answer answer_to(const search::Draft& draft) {
  search::WhatIf what_if;
  return answered(what_if.answer(draft));
}

}  // namespace pipewright::test
