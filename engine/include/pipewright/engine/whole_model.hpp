#pragma once

// A PipelineModule as one model on one process, for a forward without a pipeline.

#include <memory>
#include <vector>

#include "pipewright/engine/pipeline_module.hpp"
#include "pipewright/exec/training/layer.hpp"

namespace pipewright::engine {

class WholeModel {
 public:
  /// Builds every layer, with the weights that a training begins with. `device`: where they lie.
  explicit WholeModel(const PipelineModule& module, at::Device device = at::kCPU);

  /// What the last layer makes of what the first one takes, which lies on the device. Layers are in
  /// evaluation mode unless `context` says that it trains; there is a graph where LibTorch makes
  /// one. Of several calls at once the caller takes care.
  exec::Tensors forward(const exec::Tensors& inputs,
                        const exec::CallContext& context = {.training = false});
  at::Tensor forward(const at::Tensor& input);

  const std::vector<std::shared_ptr<exec::Layer>>& layers() const { return layers_; }
  /// In the order of layers, as Executor::parameters.
  std::vector<at::Tensor> parameters() const;

 private:
  std::vector<exec::LayerSpec> specs_;
  int base_seed_;
  std::vector<std::shared_ptr<exec::Layer>> layers_;
};

}  // namespace pipewright::engine
