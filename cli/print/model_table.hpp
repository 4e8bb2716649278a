#pragma once

// A transformer's layers, for people and for programs.

#include <string>

#include "pipewright/plan/json/json.hpp"
#include "pipewright/plan/trainers/megatron_arguments.hpp"

namespace pipewright::cli {

/// Layers that are alike share a row.
std::string model_table(const plan::DescribedTransformer& transformer);
plan::Json model_json(const plan::DescribedTransformer& transformer);

}  // namespace pipewright::cli
