#include "pipewright/exec/checkpoint/named_weights.hpp"

#include <memory>

#include "pipewright/exec/checkpoint/weight_folder.hpp"

namespace pipewright::exec {

NamedWeights weights_of(StateDict state) {
  NamedWeights weights{.where = "the state"};
  for (const auto& [name, tensor] : state)
    weights.sizes[name] = tensor.sizes().vec();
  weights.read = [kept = std::make_shared<const StateDict>(std::move(state))](
                     const std::string& name) { return kept->at(name); };
  return weights;
}

NamedWeights weights_of(const WeightFolder& folder) {
  NamedWeights weights{.where = folder.folder().string()};
  for (const std::string& name : folder.names())
    weights.sizes[name] = folder.find(name)->sizes;
  weights.read = [folder](const std::string& name) { return folder.tensor(name); };
  return weights;
}

StateDict read_all(const NamedWeights& weights) {
  StateDict state;
  for (const auto& [name, sizes] : weights.sizes)
    state.emplace(name, weights.read(name));
  return state;
}

}  // namespace pipewright::exec
