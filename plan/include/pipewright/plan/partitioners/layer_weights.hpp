#pragma once

// What each layer weighs when layers are cut into stages, by method: `profile` (measured time),
// `parameters`, `type:REGEX` (the layers of a kind count, the others do not), or `uniform`.

#include <optional>
#include <string>
#include <vector>

#include "pipewright/plan/costs/layer_costs.hpp"
#include "pipewright/plan/model/model.hpp"

namespace pipewright::plan {

/// The names above, for messages; the first is the default.
const std::vector<std::string>& partition_methods();

/// REGEX of `type:REGEX`; nothing for another method.
std::optional<std::string> type_pattern(const std::string& method);

/// Throws InputError that lists the methods when this is none of them, or says what is wrong with
/// the pattern: none, of more than 200 letters, or with a number of more than 3 digits.
void check_partition_method(const std::string& method);

/// The time that each layer holds its rank for one microbatch, the loss with the last layer.
std::vector<double> profile_weights(const LayerCosts& costs);

/// Bytes of parameters.
std::vector<double> parameter_weights(const LayerCosts& costs);

/// How many parameters.
std::vector<double> parameter_weights(const Model& model);

/// 1 for a layer in whose kind `pattern` (ECMAScript, any case) is found, else 0, as DeepSpeed does
/// with class names. Throws InputError when it is no pattern, or found in no layer.
std::vector<double> type_weights(const Model& model, const std::string& pattern);

/// What a layer is called: its name and its class, say.
using LayerWords = std::vector<std::string>;

/// The same of layers with several words, in one of which it is found.
std::vector<double> type_weights(const std::vector<LayerWords>& layers, const std::string& pattern);

/// By any method but `uniform`, which has no weights.
std::vector<double> weights_by(const std::string& method, const Model& model,
                               const LayerCosts& costs);

/// Boundaries of `parts` parts: the weights balanced, or for `uniform` the layers counted.
std::vector<int> boundaries_by(const std::string& method, const std::vector<double>& weights,
                               int parts);

}  // namespace pipewright::plan
