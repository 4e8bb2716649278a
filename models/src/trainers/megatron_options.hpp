#pragma once

// Megatron's arguments for kernels, precision and optimizer, in the form of a table of runs.

#include <string>
#include <string_view>
#include <vector>

#include "pipewright/models/measured/trainer_options.hpp"
#include "trainers/megatron_fields.hpp"

namespace pipewright::models {

/// `text` is the whole file, which is also searched for environment variables.
TrainerOptions megatron_options(MegatronFields& fields, std::string_view text);

/// Returns the options that were never read and that may affect time and memory. Options for
/// learning, data, checkpoints and logs do not.
std::vector<std::string> unknown_options(const MegatronFields& fields);

}  // namespace pipewright::models
