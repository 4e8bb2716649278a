// The layers of an encoder-decoder transformer. Every layer passes both sequences on.

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "feed_forward.hpp"
#include "pipewright/engine/models/group_layers.hpp"
#include "pipewright/engine/models/model_builder.hpp"
#include "pipewright/exec/data/text.hpp"
#include "pipewright/exec/training/cut_parameter.hpp"
#include "pipewright/exec/training/group_sums.hpp"
#include "pipewright/exec/training/layer.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/model/encoder_decoder_model.hpp"

namespace pipewright::engine {
namespace {

using TwoSides = plan::EncoderDecoderShape;

/// Token embeddings of both sides, [batch, 2, sequence], from a shared table, with separate
/// positions.
class TwoEmbeddings final : public exec::Layer {
 public:
  explicit TwoEmbeddings(const TwoSides& shape)
      : words_(register_module(
            "words", GroupEmbedding(shape.vocabulary, shape.hidden, exec::TensorParallelPlace{}))),
        read_(register_module(
            "read", GroupPositions(shape.sequence, shape.hidden, exec::TensorParallelPlace{}))),
        written_(register_module(
            "written", GroupPositions(shape.sequence, shape.hidden, exec::TensorParallelPlace{}))) {
  }

  exec::Tensors forward_all(const exec::Tensors& inputs, const exec::CallContext&) override {
    const at::Tensor& words = inputs.at(0);
    return {read_->added_to(words_->rows_of(words.select(1, 0))),
            written_->added_to(words_->rows_of(words.select(1, 1)))};
  }

 private:
  GroupEmbedding words_;
  GroupPositions read_, written_;
};

/// Pre-norm attention with a residual connection: queries come from `asking`, keys and values from
/// `known`. Tensor-parallel ranks partition the heads.
class AttentionBlockImpl final : public torch::nn::Module {
 public:
  AttentionBlockImpl(const TwoSides& shape, const exec::TensorParallelPlace& place, bool causal)
      : place_(place),
        head_width_(shape.hidden / shape.heads),
        causal_(causal),
        norm_(register_module("norm", GroupNorm(NormSizes{.width = shape.hidden}, place))),
        query_(register_module("query", ColumnLinear(shape.hidden, shape.hidden, place))),
        known_(register_module("known", ColumnLinear(shape.hidden, 2 * shape.hidden, place, 2))),
        project_(register_module("project", RowLinear(shape.hidden, shape.hidden, place))) {}

  /// `known` undefined: self-attention.
  at::Tensor forward(const at::Tensor& asking, const at::Tensor& known) const {
    const exec::Tensors own = for_own_groups(norm_->forward(asking), place_, exec::Tokens::Whole);
    const exec::Tensors queries = query_->of_groups(own);
    const exec::Tensors seen = known_->of_groups(
        known.defined() ? for_own_groups(known, place_, exec::Tokens::Whole) : own);
    exec::Tensors mixed;
    for (std::size_t group = 0; group < queries.size(); ++group) {
      const auto parts = seen[group].chunk(2, -1);
      mixed.push_back(at::scaled_dot_product_attention(heads_of(queries[group]), heads_of(parts[0]),
                                                       heads_of(parts[1]), {}, 0, causal_)
                          .transpose(1, 2)
                          .flatten(2));
    }
    return asking + project_->sum_over(mixed);
  }
  void add_cut_parameters(const std::string& name, std::vector<exec::CutParameter>& all) const {
    add_cuts(all, query_->cut_parameters(name + ".query"));
    add_cuts(all, known_->cut_parameters(name + ".known"));
    add_cuts(all, project_->cut_parameters(name + ".project"));
  }

 private:
  at::Tensor heads_of(const at::Tensor& values) const {
    return values.unflatten(-1, {-1, head_width_}).transpose(1, 2);
  }

  exec::TensorParallelPlace place_;
  std::int64_t head_width_;
  bool causal_;
  GroupNorm norm_;
  ColumnLinear query_, known_;
  RowLinear project_;
};
TORCH_MODULE(AttentionBlock);

/// A pre-norm MLP with a residual connection.
class MlpBlockImpl final : public torch::nn::Module {
 public:
  MlpBlockImpl(const TwoSides& shape, const exec::TensorParallelPlace& place)
      : place_(place),
        norm_(register_module("norm", GroupNorm(NormSizes{.width = shape.hidden}, place))),
        up_(register_module("up", ColumnLinear(shape.hidden, 4 * shape.hidden, place))),
        down_(register_module("down", RowLinear(4 * shape.hidden, shape.hidden, place))) {}

  at::Tensor forward(const at::Tensor& input) const {
    exec::Tensors wide =
        up_->of_groups(for_own_groups(norm_->forward(input), place_, exec::Tokens::Whole));
    for (at::Tensor& of_group : wide)
      of_group = at::gelu(of_group);
    return input + down_->sum_over(wide);
  }
  void add_cut_parameters(const std::string& name, std::vector<exec::CutParameter>& all) const {
    add_cuts(all, up_->cut_parameters(name + ".up"));
    add_cuts(all, down_->cut_parameters(name + ".down"));
  }

 private:
  exec::TensorParallelPlace place_;
  GroupNorm norm_;
  ColumnLinear up_;
  RowLinear down_;
};
TORCH_MODULE(MlpBlock);

class EncoderBlock final : public exec::Layer {
 public:
  EncoderBlock(const TwoSides& shape, const exec::TensorParallelPlace& place, exec::Tokens)
      : looks_(register_module("looks", AttentionBlock(shape, place, /*causal=*/false))),
        thinks_(register_module("thinks", MlpBlock(shape, place))) {}

  exec::Tensors forward_all(const exec::Tensors& inputs, const exec::CallContext&) override {
    return {thinks_->forward(looks_->forward(inputs.at(0), {})), inputs.at(1)};
  }
  std::vector<exec::CutParameter> cut_parameters() const override {
    std::vector<exec::CutParameter> all;
    looks_->add_cut_parameters("looks", all);
    thinks_->add_cut_parameters("thinks", all);
    return all;
  }

 private:
  AttentionBlock looks_;
  MlpBlock thinks_;
};

class DecoderBlock final : public exec::Layer {
 public:
  DecoderBlock(const TwoSides& shape, const exec::TensorParallelPlace& place, exec::Tokens)
      : looks_back_(register_module("looks_back", AttentionBlock(shape, place, /*causal=*/true))),
        reads_(register_module("reads", AttentionBlock(shape, place, /*causal=*/false))),
        thinks_(register_module("thinks", MlpBlock(shape, place))) {}

  exec::Tensors forward_all(const exec::Tensors& inputs, const exec::CallContext&) override {
    const at::Tensor written = looks_back_->forward(inputs.at(1), {});
    return {inputs.at(0), thinks_->forward(reads_->forward(written, inputs.at(0)))};
  }
  std::vector<exec::CutParameter> cut_parameters() const override {
    std::vector<exec::CutParameter> all;
    looks_back_->add_cut_parameters("looks_back", all);
    reads_->add_cut_parameters("reads", all);
    thinks_->add_cut_parameters("thinks", all);
    return all;
  }

 private:
  AttentionBlock looks_back_, reads_;
  MlpBlock thinks_;
};

/// The logits of the decoder's tokens.
class WrittenScores final : public exec::Layer {
 public:
  explicit WrittenScores(const TwoSides& shape)
      : norm_(register_module(
            "norm", GroupNorm(NormSizes{.width = shape.hidden}, exec::TensorParallelPlace{}))),
        scores_(register_module("scores", torch::nn::Linear(shape.hidden, shape.vocabulary))) {}

  exec::Tensors forward_all(const exec::Tensors& inputs, const exec::CallContext&) override {
    return {scores_->forward(norm_->forward(inputs.at(1)))};
  }

 private:
  GroupNorm norm_;
  torch::nn::Linear scores_;
};

std::vector<exec::LayerSpec> encoder_decoder_layers(const TwoSides& shape,
                                                    const LayerChoice& choice) {
  if (choice.tokens == exec::Tokens::Cut)
    throw plan::InputError(
        "pipeline.sequence_parallel: the model encoder-decoder does not support it; leave it out");
  const auto kind = [&](const char* layer) {
    return fmt::format("encoder-decoder {}: hidden {}, heads {}, sequence {}, vocabulary {}", layer,
                       shape.hidden, shape.heads, shape.sequence, shape.vocabulary);
  };
  std::vector<exec::LayerSpec> layers;
  layers.push_back({.name = "embedding",
                    .build = [shape] { return std::make_shared<TwoEmbeddings>(shape); },
                    .kind = kind("embedding")});
  for (int i = 0; i < shape.encoder_blocks; ++i)
    layers.push_back(layer_with_shards<EncoderBlock>(fmt::format("encoder{}", i), kind("encoder"),
                                                     shape, exec::Tokens::Whole,
                                                     plan::faults_of_encoder_decoder_cut));
  for (int i = 0; i < shape.decoder_blocks; ++i)
    layers.push_back(layer_with_shards<DecoderBlock>(fmt::format("decoder{}", i), kind("decoder"),
                                                     shape, exec::Tokens::Whole,
                                                     plan::faults_of_encoder_decoder_cut));
  layers.push_back({.name = "head",
                    .build = [shape] { return std::make_shared<WrittenScores>(shape); },
                    .kind = kind("head")});
  return layers;
}

/// Windows of a text with the task to reverse it byte by byte. Inputs: the text to read, and the
/// bytes written before each position, which is 0 before the first.
class BackToFront final : public exec::Dataset {
 public:
  explicit BackToFront(std::unique_ptr<exec::Dataset> windows) : windows_(std::move(windows)) {}

  at::Tensor input(int step, int microbatch) const override {
    const at::Tensor read = windows_->input(step, microbatch);
    const at::Tensor written =
        at::constant_pad_nd(read.flip(1).narrow(1, 0, read.size(1) - 1), {1, 0});
    return at::stack({read, written}, 1);
  }
  at::Tensor target(int step, int microbatch) const override {
    return windows_->input(step, microbatch).flip(1);
  }

 private:
  std::unique_ptr<exec::Dataset> windows_;
};

}  // namespace

template <>
const ModelBuilder& builder_of<plan::EncoderDecoderShape>() {
  static const ModelBuilder translator = declare_builder<TwoSides>(
      {.layers = encoder_decoder_layers,
       .open = [](const TwoSides& shape, const std::filesystem::path& file,
                  const exec::BatchShape& batch) -> std::unique_ptr<exec::Dataset> {
         return std::make_unique<BackToFront>(exec::open_text(file, shape.sequence, batch));
       }});
  return translator;
}

}  // namespace pipewright::engine
