#pragma once

// The fields of torchtitan's configurations, by version.

#include <span>
#include <string>

#include "trainers/field_rules.hpp"

namespace pipewright::models {

/// The versions whose configurations are written and read: TOML, and Python.
enum class TorchtitanVersion { V02, V03 };
std::string name_of(TorchtitanVersion version);  // torchtitan 0.3

/// Returns a rule for every field of the version's configuration.
std::span<const FieldRule> torchtitan_rules(TorchtitanVersion version);

}  // namespace pipewright::models
