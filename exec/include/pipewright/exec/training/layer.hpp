#pragma once

// A layer: a LibTorch module that also receives the context of each call.

#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include "pipewright/exec/training/layer_spec.hpp"

namespace pipewright::exec {

struct TrainingSetup;

/// A second leaf for a parameter, which collects the gradient from the tokens of another pipeline.
struct ParameterAlias {
  std::string parameter;  // the parameter's name
  int source = 0;         // pipeline in the expert-parallel group; 0 is the parameter itself
  at::Tensor leaf;        // shares the parameter's memory
};

/// One layer. Override `forward` if it takes and returns one tensor [batch, …], or `forward_all`
/// for several.
class Layer : public torch::nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& input, const CallContext& context);
  /// Throws InputError if the layer takes one tensor and gets another number of them.
  virtual Tensors forward_all(const Tensors& inputs, const CallContext& context);
  /// Returns the parameters that tensor-parallel ranks partition. Of all others each rank has the
  /// whole.
  virtual std::vector<CutParameter> cut_parameters() const { return {}; }
  /// Returns the aliases of expert parameters under expert parallelism, one for each pipeline but
  /// the first, so that each pipeline's gradients are summed separately. Returns the same at each
  /// call.
  virtual std::vector<ParameterAlias> aliases() { return {}; }
};

/// Builds layer `index`. Its weights depend only on `base_seed` and `index`, so a model starts with
/// the same weights under every partition; a tied weight is that of the first layer with its key. A
/// tensor-parallel rank has its part of the same numbers. Safe to call from several threads. Throws
/// InputError if the tied weight does not exist, or if the layer cannot be partitioned like this.
std::shared_ptr<Layer> build_layer(const std::vector<LayerSpec>& specs, int index, int base_seed,
                                   const TensorParallelPlace& place = {});

/// Does the same with a training's precision, on `device`.
std::shared_ptr<Layer> build_layer(const TrainingSetup& setup, int index,
                                   at::Device device = at::kCPU,
                                   const TensorParallelPlace& place = {});

/// Returns the parameters of all layers, in order.
std::vector<at::Tensor> parameters_of(const std::vector<std::shared_ptr<Layer>>& layers);

/// Returns true if a rank has only a part of the layer.
inline bool is_cut(const LayerSpec& spec, const TensorParallelPlace& place) {
  return spec.build_shard && (place.groups > 1 || (spec.has_experts && place.experts.count > 1));
}

/// Runs layer `index`. If it uses random numbers, seeds the generator first.
Tensors run_layer(const LayerSpec& spec, Layer& layer, int index, int base_seed,
                  const Tensors& inputs, const CallContext& context);

/// Returns the mean loss of one microbatch from the last layer's outputs, which may be a
/// tensor-parallel rank's part.
at::Tensor loss_of(const TrainingSetup& setup, const Tensors& outputs, const Tensors& targets,
                   const TensorParallelPlace& place = {});

}  // namespace pipewright::exec
