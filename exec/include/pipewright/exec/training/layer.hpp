#pragma once

// A layer is a LibTorch module that also knows which call it is.

#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include "pipewright/exec/training/layer_spec.hpp"

namespace pipewright::exec {

struct TrainingSetup;

/// A parameter once more, whose gradient is that of tokens of another pipeline.
struct ParameterAlias {
  std::string parameter;  // its name
  int source = 0;         // the pipeline among those that share out the experts; of the parameter 0
  at::Tensor leaf;        // the same numbers, in the same memory
};

/// One layer. Override `forward` for one tensor [batch, …] in and one out, or `forward_all` for
/// several.
class Layer : public torch::nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& input, const CallContext& context);
  /// Throws InputError when the layer takes one tensor and gets another number of them.
  virtual Tensors forward_all(const Tensors& inputs, const CallContext& context);
  /// Of which parameters a shard has a part; of all others it has the whole.
  virtual std::vector<CutParameter> cut_parameters() const { return {}; }
  /// Where ranks share out experts, those of their parameters, for each pipeline but the first:
  /// gradients of each are added up by themselves. The same at each call.
  virtual std::vector<ParameterAlias> aliases() { return {}; }
};

/// Builds layer `index`. Its weights depend on `base_seed` and `index` alone, so a model starts
/// with the same weights under every partition; a tied weight is that of the first layer with its
/// key. A shard has its part of the same numbers. Safe to call from several threads. Throws
/// InputError when the tied weight does not exist, or the layer cannot be cut so.
std::shared_ptr<Layer> build_layer(const std::vector<LayerSpec>& specs, int index, int base_seed,
                                   const ShardPlace& place = {});

/// The same as a training has it: in its precision, on `device`.
std::shared_ptr<Layer> build_layer(const TrainingSetup& setup, int index,
                                   at::Device device = at::kCPU, const ShardPlace& place = {});

/// Those of all layers, in their order.
std::vector<at::Tensor> parameters_of(const std::vector<std::shared_ptr<Layer>>& layers);

/// Whether a rank has a part of the layer alone.
inline bool is_cut(const LayerSpec& spec, const ShardPlace& place) {
  return spec.build_shard && (place.groups > 1 || (spec.has_experts && place.experts.count > 1));
}

/// Runs layer `index`, under a seed of its own where it draws random numbers.
Tensors run_layer(const LayerSpec& spec, Layer& layer, int index, int base_seed,
                  const Tensors& inputs, const CallContext& context);

/// Mean loss of one microbatch from the last layer's outputs, which may be those of a shard.
at::Tensor loss_of(const TrainingSetup& setup, const Tensors& outputs, const Tensors& targets,
                   const ShardPlace& place = {});

}  // namespace pipewright::exec
