#pragma once

// All layers of a PipelineModule in one process, for a forward without a pipeline.

#include <memory>
#include <vector>

#include "pipewright/engine/pipeline_module.hpp"
#include "pipewright/exec/training/layer.hpp"

namespace pipewright::engine {

class WholeModel {
 public:
  /// Builds every layer on `device`, with the same initial weights as a pipeline that trains it.
  explicit WholeModel(const PipelineModule& module, at::Device device = at::kCPU);

  /// Runs all layers and returns the last one's outputs. `inputs` must be on the model's device.
  /// Layers run in evaluation mode unless `context.training` is set. As usual in LibTorch, an
  /// autograd graph is recorded unless gradients are disabled. Calls must not run concurrently.
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
