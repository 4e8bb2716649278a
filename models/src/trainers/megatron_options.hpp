#pragma once

// What Megatron's arguments say beside sizes and cut: of its kernels, precision and optimizer, as a
// row of a table of runs says it.

#include <string>
#include <string_view>
#include <vector>

#include "pipewright/models/measured/trainer_options.hpp"
#include "trainers/megatron_fields.hpp"

namespace pipewright::models {

/// `text` is all of the file, whose variables of the environment are looked for.
TrainerOptions megatron_options(MegatronFields& fields, std::string_view text);

/// Options that nobody has asked for and that are not known to leave time and memory as they are:
/// those of learning, data, checkpoints and logs do.
std::vector<std::string> unknown_options(const MegatronFields& fields);

}  // namespace pipewright::models
