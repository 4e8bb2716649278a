// A vision transformer's layers.

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/linear.h>

#include "pipewright/engine/models/group_layers.hpp"
#include "pipewright/engine/models/model_builder.hpp"
#include "pipewright/exec/data/cifar10.hpp"
#include "pipewright/exec/training/group_sums.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/model/vit_model.hpp"
#include "plain_block.hpp"

namespace pipewright::engine {
namespace {

/// Splits images [batch, 3, side, side] into patches [batch, patches, width] with position
/// embeddings.
class Patches final : public exec::Layer {
 public:
  explicit Patches(const plan::VitShape& shape)
      : side_(shape.patch),
        pixels_(register_module("pixels",
                                torch::nn::Linear(3 * std::int64_t{side_} * side_, shape.hidden))),
        places_(register_parameter("places", at::empty({shape.patches(), shape.hidden}))) {
    constexpr double deviation = 0.02;
    torch::nn::init::normal_(places_, 0, deviation);
  }

  at::Tensor forward(const at::Tensor& images, const exec::CallContext&) override {
    const at::Tensor cut =
        images.unflatten(3, {-1, side_})
            .unflatten(2, {-1, side_})    // [batch, 3, rows, side, columns, side]
            .permute({0, 2, 4, 1, 3, 5})  // [batch, rows, columns, 3, side, side]
            .flatten(3)
            .flatten(1, 2);
    return pixels_->forward(cut) + places_;
  }

 private:
  int side_;
  torch::nn::Linear pixels_;
  at::Tensor places_;
};

/// A block with full attention between patches.
class PatchBlock final : public PlainBlock {
 public:
  PatchBlock(const plan::VitShape& shape, const exec::TensorParallelPlace& place,
             exec::Tokens tokens)
      : PlainBlock(shape.hidden, shape.heads, /*causal=*/false, place, tokens) {}
};

/// A norm, the mean over all patches, and the logits of the classes.
class Classes final : public exec::Layer {
 public:
  explicit Classes(const plan::VitShape& shape)
      : norm_(register_module(
            "norm", GroupNorm(NormSizes{.width = shape.hidden}, exec::TensorParallelPlace{}))),
        scores_(register_module("scores", torch::nn::Linear(shape.hidden, shape.classes))) {}

  at::Tensor forward(const at::Tensor& input, const exec::CallContext&) override {
    return scores_->forward(norm_->forward(input).mean(1));
  }

 private:
  GroupNorm norm_;
  torch::nn::Linear scores_;
};

std::vector<exec::LayerSpec> vit_layers(const plan::VitShape& shape, const LayerChoice& choice) {
  if (choice.tokens == exec::Tokens::Cut)
    throw plan::InputError(
        "pipeline.sequence_parallel: the model vit does not support it; leave it out");
  const auto kind = [&](const char* layer) {
    return fmt::format("vit {}: hidden {}, heads {}, patch {}, image {}, classes {}", layer,
                       shape.hidden, shape.heads, shape.patch, shape.image_size, shape.classes);
  };
  std::vector<exec::LayerSpec> layers;
  layers.push_back({.name = "patches",
                    .build = [shape] { return std::make_shared<Patches>(shape); },
                    .kind = kind("patches")});
  for (int i = 0; i < shape.blocks; ++i)
    layers.push_back(layer_with_shards<PatchBlock>(fmt::format("block{}", i), kind("block"), shape,
                                                   exec::Tokens::Whole, plan::faults_of_vit_cut));
  layers.push_back({.name = "head",
                    .build = [shape] { return std::make_shared<Classes>(shape); },
                    .kind = kind("head")});
  return layers;
}

}  // namespace

template <>
const ModelBuilder& builder_of<plan::VitShape>() {
  static const ModelBuilder vit = declare_builder<plan::VitShape>(
      {.layers = vit_layers,
       .open = [](const plan::VitShape& shape, const std::filesystem::path& folder,
                  const exec::BatchShape& batch) {
         return exec::open_cifar10(folder, shape.image_size, batch);
       }});
  return vit;
}

}  // namespace pipewright::engine
