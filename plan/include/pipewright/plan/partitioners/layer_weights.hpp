#pragma once

// Weights of layers for partitioning, by method: `profile` (measured time), `parameters`,
// `type:REGEX` (only layers of a matching kind count), or `uniform`.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/model/model.hpp"

namespace pipewright::plan {

/// The method names above, for messages. The first is the default.
const std::vector<std::string>& partition_methods();

/// Returns REGEX of `type:REGEX`, or nothing for another method.
std::optional<std::string> type_pattern(const std::string& method);

/// Throws InputError that lists the methods if `method` is unknown, or that explains why its
/// pattern is invalid: empty, longer than 200 characters, or with a number of more than 3 digits.
void check_partition_method(const std::string& method);

/// Returns the time for which each layer occupies its rank per microbatch. The loss is added to the
/// last layer.
std::vector<double> profile_weights(const LayerCosts& costs);

/// Returns the parameter bytes of each layer.
std::vector<double> parameter_weights(const LayerCosts& costs);

/// Returns the parameter count of each layer.
std::vector<double> parameter_weights(const Model& model);

/// Returns 1 for a layer whose kind matches `pattern` (ECMAScript, case-insensitive, anywhere in
/// the name), else 0, as DeepSpeed does with class names. Throws InputError if the pattern is
/// invalid or matches no layer.
std::vector<double> type_weights(const Model& model, const std::string& pattern);

/// The names of a layer, for example its name and its class.
using LayerNames = std::vector<std::string>;

/// Returns these weights for layers with several names, of which any may match `pattern`.
std::vector<double> type_weights(const std::vector<LayerNames>& layers, const std::string& pattern);

/// Returns weights by any method except `uniform`, which has none.
std::vector<double> weights_by(const std::string& method, const Model& model,
                               const LayerCosts& costs);

/// Returns the boundaries of `parts` parts: with balanced weights or, for `uniform`, with equal
/// layer counts.
std::vector<int> boundaries_by(const std::string& method, const std::vector<double>& weights,
                               int parts);

}  // namespace pipewright::plan
