#pragma once

// The fields of DeepSpeed's configuration.

#include <span>

#include "trainers/field_rules.hpp"

namespace pipewright::models {

/// Returns a rule for every field of DeepSpeed's JSON, by its pointer.
std::span<const FieldRule> deepspeed_rules();

}  // namespace pipewright::models
