#pragma once

// The facts about a scenario that the reader of another trainer's file needs: a file may leave the
// cut to its trainer, which makes it from the model.

#include <string>
#include <vector>

#include "pipewright/plan/json/json_document.hpp"
#include "pipewright/plan/scenario/scenario.hpp"

namespace pipewright::models {

struct CutContext {
  int replicas = 1;        // data-parallel replicas if the file does not give their number
  int blocks = 0;          // of a model that is an embedding, equal blocks and a head; 0: unknown
  int units = 0;           // tokens of a sequence; 0: unknown
  std::string function{};  // of a Python file that has several; empty: its only one
};

CutContext cut_context(const plan::Scenario& scenario);
/// Reads the context from a scenario's document, whose own cut may be faulty. `assignments`
/// override its fields. What is faulty stays unknown: reading the scenario reports it.
CutContext cut_context(const plan::JsonDocument& document,
                       const std::vector<std::string>& assignments);

}  // namespace pipewright::models
