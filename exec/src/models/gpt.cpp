#include "pipewright/exec/models/gpt.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "pipewright/exec/data/text.hpp"
#include "pipewright/exec/models/model_builder.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/exec/training/run_again.hpp"
#include "pipewright/plan/model/gpt_model.hpp"

namespace pipewright::exec {
namespace {

namespace nn = torch::nn;

class Embedding final : public Layer {
 public:
  explicit Embedding(const plan::GptShape& shape)
      : tokens_(register_module("tokens", nn::Embedding(shape.vocabulary, shape.hidden))),
        positions_(register_module("positions", nn::Embedding(shape.sequence, shape.hidden))) {}

  at::Tensor forward(const at::Tensor& input, const CallContext&) override {
    return tokens_->forward(input) +
           positions_->forward(at::arange(input.size(1), input.options().dtype(at::kLong)));
  }

 private:
  nn::Embedding tokens_, positions_;
};

/// Pre-norm transformer block: attention and a two-layer perceptron, each around a residual.
class Block final : public Layer {
 public:
  explicit Block(const plan::GptShape& shape)
      : heads_(shape.heads),
        norm1_(register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({shape.hidden})))),
        norm2_(register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({shape.hidden})))),
        qkv_(register_module("qkv", nn::Linear(shape.hidden, 3 * shape.hidden))),
        project_(register_module("project", nn::Linear(shape.hidden, shape.hidden))),
        up_(register_module("up", nn::Linear(shape.hidden, 4 * shape.hidden))),
        down_(register_module("down", nn::Linear(4 * shape.hidden, shape.hidden))) {}

  at::Tensor forward(const at::Tensor& input, const CallContext& context) override {
    const at::Tensor attended =
        input + project_->forward(attention(norm1_->forward(input), context.selective_recompute));
    return attended + down_->forward(at::gelu(up_->forward(norm2_->forward(attended))));
  }

 private:
  /// [batch, sequence, hidden] to the same, each head for itself.
  at::Tensor attention(const at::Tensor& input, bool core_again) {
    const auto batch = input.size(0), sequence = input.size(1), hidden = input.size(2);
    const auto split = [&](const at::Tensor& part) {
      return part.view({batch, sequence, heads_, hidden / heads_}).transpose(1, 2);
    };
    const auto core = [](const Tensors& qkv) {
      return at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], /*attn_mask=*/{},
                                              /*dropout_p=*/0.0, /*is_causal=*/true);
    };
    const auto parts = qkv_->forward(input).chunk(3, -1);
    const Tensors qkv{split(parts[0]), split(parts[1]), split(parts[2])};
    const at::Tensor mixed = core_again ? run_again_in_backward(core, qkv) : core(qkv);
    return mixed.transpose(1, 2).reshape({batch, sequence, hidden});
  }

  int heads_;
  nn::LayerNorm norm1_, norm2_;
  nn::Linear qkv_, project_, up_, down_;
};

class Head final : public Layer {
 public:
  explicit Head(const plan::GptShape& shape)
      : norm_(register_module("norm", nn::LayerNorm(nn::LayerNormOptions({shape.hidden})))),
        logits_(register_module("logits", nn::Linear(shape.hidden, shape.vocabulary))) {}

  at::Tensor forward(const at::Tensor& input, const CallContext&) override {
    return logits_->forward(norm_->forward(input));
  }

 private:
  nn::LayerNorm norm_;
  nn::Linear logits_;
};

}  // namespace

std::vector<LayerSpec> gpt_layers(const plan::GptShape& shape) {
  std::vector<LayerSpec> layers;
  layers.push_back({"embedding", [shape] { return std::make_shared<Embedding>(shape); }});
  for (int i = 0; i < shape.blocks; ++i)
    layers.push_back(
        {fmt::format("block{}", i), [shape] { return std::make_shared<Block>(shape); }});
  layers.push_back({"head", [shape] { return std::make_shared<Head>(shape); }});
  return layers;
}

template <>
const ModelBuilder& builder_of<plan::GptShape>() {
  static const ModelBuilder gpt = declare_builder<plan::GptShape>(
      {.layers = [](const plan::GptShape& shape, int) { return gpt_layers(shape); },
       .open = [](const plan::GptShape& shape, const std::filesystem::path& file,
                  const BatchShape& batch) { return open_text(file, shape.sequence, batch); },
       .loss = cross_entropy});
  return gpt;
}

}  // namespace pipewright::exec
