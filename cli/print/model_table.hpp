#pragma once

// Prints a transformer's layers as text and as JSON.

#include <string>

#include "pipewright/models/trainers/megatron_arguments.hpp"
#include "pipewright/plan/json/json.hpp"

namespace pipewright::cli {

/// Returns a table in which equal layers share a row.
std::string model_table(const models::DescribedTransformer& transformer);
plan::Json model_json(const models::DescribedTransformer& transformer);

/// Prints on stderr what was assumed about the model of the file, and its options that are not
/// counted.
void say_reading(const models::DescribedTransformer& transformer, const std::string& file);

}  // namespace pipewright::cli
