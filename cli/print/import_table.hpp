#pragma once

// Prints the layers of an imported module as text and as JSON.

#include <string>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/model/imported_model.hpp"

namespace pipewright::cli {

std::string import_table(const plan::ImportedModel& model);
plan::Json import_json(const plan::ImportedModel& model);

}  // namespace pipewright::cli
