#include "pipewright/plan/model/transformer_config.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "transformer_weights.hpp"

namespace pipewright::plan {
namespace {

/// A double counts exactly up to 9e15, and no model is near that.
constexpr double most_parameters = 1e15;

double parameters_in_all(const TransformerConfig& config) {
  const auto count = [&](bool sparse) {
    return weight_total(weights_of_layer(config, sparse), {}).parameters;
  };
  const auto sparse = std::count(config.sparse.begin(), config.sparse.end(), true);
  double sum = weight_total(weights_of_embedding(config, 1), {}).parameters +
               weight_total(weights_of_head(config, 1), {}).parameters;
  if (sparse > 0)
    sum += static_cast<double>(sparse) * count(true);
  return sum + static_cast<double>(config.layers - sparse) * count(false) +
         config.predictions * weight_total(weights_of_prediction(config), {}).parameters;
}

}  // namespace

bool TransformerConfig::has_experts(int layer) const {
  return static_cast<std::size_t>(layer) < sparse.size() && sparse[static_cast<std::size_t>(layer)];
}

bool TransformerConfig::has_mixture() const {
  return experts > 0 && std::find(sparse.begin(), sparse.end(), true) != sparse.end();
}

int TransformerConfig::leading_dense_layers() const {
  return has_mixture()
             ? static_cast<int>(std::find(sparse.begin(), sparse.end(), true) - sparse.begin())
             : 0;
}

void TransformerConfig::set_mixture_behind(int dense_layers) {
  sparse.assign(static_cast<std::size_t>(layers), true);
  std::fill_n(sparse.begin(), std::min(dense_layers, layers), false);
}

bool TransformerConfig::has_window(int layer) const {
  if (window == 0)
    return false;
  return windowed.empty() ? layer >= window_from : windowed.at(static_cast<std::size_t>(layer));
}

int TransformerConfig::seen(int layer, int sequence) const {
  return has_window(layer) ? std::min(window, sequence) : sequence;
}

std::vector<ConfigFault> faults_of(const TransformerConfig& config) {
  std::vector<ConfigFault> faults;
  if (!config.is_latent() && config.heads % config.kv_heads != 0)
    faults.push_back({&config.kv_heads,
                      fmt::format("{} heads do not divide among {} heads of keys and values; {} "
                                  "would do",
                                  config.heads, config.kv_heads,
                                  nearest_sizes(config.kv_heads, config.heads, [&](int size) {
                                    return config.heads % size == 0;
                                  }))});
  if (config.experts_per_token > config.experts)
    faults.push_back(
        {&config.experts_per_token, fmt::format("a token goes to {} experts, but a layer has {}",
                                                config.experts_per_token, config.experts)});
  if (config.router_groups < 1 || config.experts % config.router_groups != 0)
    faults.push_back({&config.router_groups, fmt::format("{} experts do not divide into {} groups",
                                                         config.experts, config.router_groups)});
  else if (config.groups_per_token < 1 || config.groups_per_token > config.router_groups)
    faults.push_back(
        {&config.groups_per_token, fmt::format("a token goes to {} groups of experts, of {}",
                                               config.groups_per_token, config.router_groups)});
  else if (config.router_groups > 1 && config.experts_per_token > config.experts /
                                                                      config.router_groups *
                                                                      config.groups_per_token)
    faults.push_back(
        {&config.experts_per_token,
         fmt::format("a token goes to {} experts, but {} groups have {}", config.experts_per_token,
                     config.groups_per_token,
                     config.experts / config.router_groups * config.groups_per_token)});
  if (faults.empty() && parameters_in_all(config) > most_parameters)
    faults.push_back({&config.hidden, fmt::format("these sizes make {:.1e} parameters; at most "
                                                  "{:.0e} are possible",
                                                  parameters_in_all(config), most_parameters)});
  return faults;
}

}  // namespace pipewright::plan
