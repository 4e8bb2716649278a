#pragma once

// The fields of another trainer's configuration, and how the reader here treats each of them. A
// reader rejects fields without a rule, so that no field is dropped silently.

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "pipewright/plan/json/json.hpp"

namespace pipewright::models {

/// Read: determines the cut. Irrelevant: changes neither the cut nor the time or memory of a step.
/// Fixed: only the accepted values can be predicted here.
enum class FieldUse { Read, Irrelevant, Fixed };

struct FieldRule {
  /// "training.seq_len", or "checkpoint.*" for a section and everything in it.
  std::string_view name;
  FieldUse use = FieldUse::Read;
  std::string_view accepted{};  // of Fixed: a JSON array
  std::string_view reason{};    // of Fixed: why other values are rejected
};

/// Returns the first rule for this field, or null.
const FieldRule* find_rule(std::span<const FieldRule> rules, std::string_view field);

/// Returns the error of a field that has no rule or a value that its rule rejects. `value` is null
/// if only the trainer's own language could evaluate it. `trainer`: "torchtitan 0.3".
std::optional<std::string> rule_fault(std::span<const FieldRule> rules, const std::string& field,
                                      const plan::Json* value, const std::string& trainer);

}  // namespace pipewright::models
