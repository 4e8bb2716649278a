#include "pipewright/plan/partitioners/layer_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <regex>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/partition/partition.hpp"
#include "pipewright/plan/partitioners/balanced.hpp"

namespace pipewright::plan {
namespace {

constexpr std::string_view type_prefix = "type:";

/// The library recurses over a pattern and counts repeats without a check for overflow.
void check_size(const std::string& pattern) {
  constexpr std::size_t most_letters = 200;
  constexpr std::ptrdiff_t most_digits = 3;
  if (pattern.size() > most_letters)
    throw InputError(fmt::format("type: the pattern has {} letters, the most is {}", pattern.size(),
                                 most_letters));
  const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  for (auto at = pattern.begin(); at != pattern.end();) {
    const auto end = std::find_if_not(at, pattern.end(), is_digit);
    if (end - at > most_digits)
      throw InputError(fmt::format(
          "type:{}: {} is too large a number for a pattern, which has at most {} digits", pattern,
          std::string(at, end), most_digits));
    at = end == pattern.end() ? end : end + 1;
  }
}

std::regex compiled(const std::string& pattern) {
  check_size(pattern);
  try {
    return std::regex(pattern, std::regex::ECMAScript | std::regex::icase);
  } catch (const std::regex_error& error) {
    throw InputError(
        fmt::format("type:{}: this is no regular expression: {}", pattern, error.what()));
  }
}

std::vector<std::string> kinds_of(const Model& model) {
  std::vector<std::string> kinds;
  for (const Layer& layer : model.layers)
    if (std::find(kinds.begin(), kinds.end(), layer.kind) == kinds.end())
      kinds.push_back(layer.kind);
  return kinds;
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
    compiled(*pattern);
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

std::vector<double> type_weights(const Model& model, const std::string& pattern) {
  const std::regex expression = compiled(pattern);
  std::vector<double> weights;
  for (const Layer& layer : model.layers)
    weights.push_back(std::regex_search(layer.kind, expression) ? 1 : 0);
  if (std::accumulate(weights.begin(), weights.end(), 0.0) == 0)
    throw InputError(
        fmt::format("type:{} matches no layer (possible: {})", pattern, listed(kinds_of(model))));
  return weights;
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
