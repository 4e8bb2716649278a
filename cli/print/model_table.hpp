#pragma once

// A transformer's layers, for people and for programs.

#include <string>

#include "pipewright/models/trainers/megatron_arguments.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::cli {

/// Layers that are alike share a row.
std::string model_table(const models::DescribedTransformer& transformer);
plan::Json model_json(const models::DescribedTransformer& transformer);

}  // namespace pipewright::cli
