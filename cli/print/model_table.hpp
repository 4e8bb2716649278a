#pragma once

// Prints a transformer's layers as text and as JSON.

#include <string>

#include "pipewright/models/trainers/megatron_arguments.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::cli {

/// Returns a table in which equal layers share a row.
std::string model_table(const models::DescribedTransformer& transformer);
plan::Json model_json(const models::DescribedTransformer& transformer);

}  // namespace pipewright::cli
