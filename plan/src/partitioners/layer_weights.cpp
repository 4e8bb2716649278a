#include "pipewright/plan/partitioners/layer_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/partition/partition.hpp"
#include "pipewright/plan/partitioners/balanced.hpp"
#include "pipewright/plan/partitioners/name_pattern.hpp"

namespace pipewright::plan {
namespace {

constexpr std::string_view type_prefix = "type:";

/// Returns all words, without duplicates.
std::vector<std::string> words_of(const std::vector<LayerNames>& layers) {
  std::vector<std::string> all;
  for (const LayerNames& words : layers)
    for (const std::string& word : words)
      if (std::find(all.begin(), all.end(), word) == all.end())
        all.push_back(word);
  return all;
}

}  // namespace

const std::vector<std::string>& partition_methods() {
  static const std::vector<std::string> methods{"profile", "parameters", "uniform", "type:REGEX"};
  return methods;
}

std::optional<std::string> type_pattern(const std::string& method) {
  if (!method.starts_with(type_prefix))
    return {};
  return method.substr(type_prefix.size());
}

void check_partition_method(const std::string& method) {
  const auto& methods = partition_methods();
  if (const auto pattern = type_pattern(method))
    NamePattern("type", *pattern);
  else if (std::find(methods.begin(), methods.end(), method) == methods.end())
    throw InputError(fmt::format("\"{}\" is not known here{} (possible: {})", method,
                                 did_you_mean(method, methods), listed(methods)));
}

std::vector<double> profile_weights(const LayerCosts& costs) {
  std::vector<double> weights;
  for (const LayerCost& layer : costs.layers)
    weights.push_back(compute_time(layer).value);
  if (!weights.empty())
    weights.back() += compute_time(costs.loss).value;
  return weights;
}

std::vector<double> parameter_weights(const LayerCosts& costs) {
  std::vector<double> weights;
  for (const LayerCost& layer : costs.layers)
    weights.push_back(static_cast<double>(layer.parameters.value));
  return weights;
}

std::vector<double> parameter_weights(const Model& model) {
  std::vector<double> weights;
  for (const Layer& layer : model.layers)
    weights.push_back(static_cast<double>(layer.parameters));
  return weights;
}

std::vector<double> type_weights(const std::vector<LayerNames>& layers,
                                 const std::string& pattern) {
  const NamePattern expression("type", pattern);
  std::vector<double> weights;
  for (const LayerNames& words : layers)
    weights.push_back(std::any_of(words.begin(), words.end(),
                                  [&](const std::string& word) { return expression.is_in(word); }));
  if (std::accumulate(weights.begin(), weights.end(), 0.0) == 0)
    throw InputError(
        fmt::format("type:{} matches no layer (possible: {})", pattern, listed(words_of(layers))));
  return weights;
}

std::vector<double> type_weights(const Model& model, const std::string& pattern) {
  std::vector<LayerNames> layers;
  for (const Layer& layer : model.layers)
    layers.push_back({layer.kind});
  return type_weights(layers, pattern);
}

std::vector<double> weights_by(const std::string& method, const Model& model,
                               const LayerCosts& costs) {
  if (const auto pattern = type_pattern(method))
    return type_weights(model, *pattern);
  return method == "parameters" ? parameter_weights(costs) : profile_weights(costs);
}

std::vector<int> boundaries_by(const std::string& method, const std::vector<double>& weights,
                               int parts) {
  if (method == "uniform")
    return uniform_boundaries(static_cast<int>(weights.size()), parts);
  return balanced_boundaries(weights, parts);
}

}  // namespace pipewright::plan
