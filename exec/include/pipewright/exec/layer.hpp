#pragma once

// The model front: a model is a list of LayerSpecs, each of which builds one layer on the rank that
// needs it.

#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipewright/plan/model.hpp"

namespace pipewright::exec {

/// What a layer may need to know of a call beside its input.
struct CallContext {
  int step = 0;
  int microbatch = 0;
};

/// One layer: a tensor [batch, …] in, a tensor [batch, …] out.
class Layer : public torch::nn::Module {
 public:
  virtual at::Tensor forward(const at::Tensor& input, const CallContext& context) = 0;
};

struct LayerSpec {
  std::string name;
  std::function<std::shared_ptr<Layer>()> build;
};

/// Builds layer `index`. Its weights depend on `base_seed` and `index` alone, so a model starts
/// with the same weights under every partition. Safe to call from several threads.
std::shared_ptr<Layer> build_layer(const std::vector<LayerSpec>& specs, int index, int base_seed);

/// Mean loss of one microbatch from the last layer's output and the target.
using Loss = std::function<at::Tensor(const at::Tensor& output, const at::Tensor& target)>;

/// Cross entropy over the last dimension of the output, averaged over all others.
at::Tensor cross_entropy(const at::Tensor& output, const at::Tensor& target);

/// The layers that `plan::gpt_model` describes. Input: int64 tokens [batch, sequence]; output:
/// logits [batch, sequence, vocabulary].
std::vector<LayerSpec> gpt_layers(const plan::GptShape& shape);

/// The layers that `plan::alexnet_model` describes. Input: images [batch, 3, size, size]; output:
/// logits [batch, classes]. Dropout draws from `seed`, layer, step and microbatch alone, so that it
/// does not depend on the order in which microbatches run.
std::vector<LayerSpec> alexnet_layers(const plan::AlexNetShape& shape, int seed);

}  // namespace pipewright::exec
