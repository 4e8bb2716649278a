#include "pipewright/exec/layer.hpp"

#include <mutex>

namespace pipewright::exec {

std::shared_ptr<Layer> build_layer(const std::vector<LayerSpec>& specs, int index, int base_seed) {
  // LibTorch's initialisers draw from one generator of the whole process.
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  torch::manual_seed(static_cast<std::uint64_t>(base_seed) * 1'000'003 +
                     static_cast<std::uint64_t>(index));
  return specs.at(static_cast<std::size_t>(index)).build();
}

at::Tensor cross_entropy(const at::Tensor& output, const at::Tensor& target) {
  return torch::nn::functional::cross_entropy(output.flatten(0, -2), target.flatten());
}

}  // namespace pipewright::exec
