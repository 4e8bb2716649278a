#pragma once

// A PipelineModule as one model in one process, for a forward without a pipeline.

#include <memory>
#include <vector>

#include "pipewright/engine/pipeline_module.hpp"
#include "pipewright/exec/training/layer.hpp"

namespace pipewright::engine {

class WholeModel {
 public:
  /// Builds every layer on `device`, with the initial weights of a training.
  explicit WholeModel(const PipelineModule& module, at::Device device = at::kCPU);

  /// Returns the last layer's outputs. `inputs` must be on the model's device. Layers run in
  /// evaluation mode unless `context` sets training; LibTorch records an autograd graph if
  /// gradients are enabled. Concurrent calls must be synchronized by the caller.
  exec::Tensors forward(const exec::Tensors& inputs,
                        const exec::CallContext& context = {.training = false});
  at::Tensor forward(const at::Tensor& input);

  const std::vector<std::shared_ptr<exec::Layer>>& layers() const { return layers_; }
  /// Returns the parameters in the order of layers, as Executor::parameters does.
  std::vector<at::Tensor> parameters() const;

 private:
  std::vector<exec::LayerSpec> specs_;
  int base_seed_;
  std::vector<std::shared_ptr<exec::Layer>> layers_;
};

}  // namespace pipewright::engine
