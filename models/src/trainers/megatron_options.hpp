#pragma once

// Megatron's arguments for kernels, precision and optimizer, in the form of a table of runs.

#include <string>
#include <string_view>
#include <vector>

#include "pipewright/models/trainers/megatron_arguments.hpp"
#include "trainers/megatron_fields.hpp"

namespace pipewright::models {

/// `text` is the whole file, which is also searched for environment variables.
TrainerOptions megatron_options(MegatronFields& fields, std::string_view text);

/// Refuses options that leave the sizes of layers unknown, and adds those whose effect is not
/// counted.
void check_options(MegatronFields& fields, std::vector<UncountedOption>& uncounted);

}  // namespace pipewright::models
