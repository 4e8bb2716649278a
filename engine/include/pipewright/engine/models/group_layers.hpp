#pragma once

// Building blocks of tensor-parallel layers (Megatron-LM, arXiv 1909.08053): linear layers split
// along outputs or inputs, an embedding split along the vocabulary, and replicated layers for
// sequence parallelism. A layer is computed in tensor groups: equal slices whose number does not
// depend on the number of ranks. A rank computes its groups one after the other, exactly as serial
// training with as many groups does, so that results do not depend on the number of ranks. With a
// single group each block equals LibTorch's module of its name.

#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <string>
#include <vector>

#include "pipewright/exec/tensors.hpp"
#include "pipewright/exec/training/group_sums.hpp"
#include "pipewright/exec/training/layer_spec.hpp"
#include "pipewright/exec/training/shard_group.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/model/transformer_config.hpp"

namespace pipewright::engine {

/// A column-parallel linear layer, split along its outputs: each group has its own outputs.
/// `blocks`: number of equal parts of the outputs that are partitioned separately, such as queries,
/// keys and values.
class ColumnLinearImpl final : public torch::nn::LinearImpl {
 public:
  ColumnLinearImpl(std::int64_t in, std::int64_t out, const exec::TensorParallelPlace& place,
                   int blocks = 1, bool has_bias = true);

  /// Computes each local group's outputs from its own input: [batch, …, outputs of the group].
  exec::Tensors of_groups(const exec::Tensors& inputs) const;
  /// Returns the split parameters of a layer that registers this block as `name`.
  std::vector<exec::CutParameter> cut_parameters(const std::string& name) const;

 private:
  exec::TensorParallelPlace place_;
  std::int64_t out_;
  int blocks_;
};

/// A row-parallel linear layer, split along its inputs: the groups' outputs are summed, then the
/// bias is added.
class RowLinearImpl final : public torch::nn::LinearImpl {
 public:
  RowLinearImpl(std::int64_t in, std::int64_t out, const exec::TensorParallelPlace& place,
                bool has_bias = true, exec::Tokens tokens = exec::Tokens::Whole);

  /// Returns the sum over all groups of all ranks, from one input [batch, tokens, inputs of the
  /// group] per local group.
  at::Tensor sum_over(const exec::Tensors& inputs) const;
  /// Computes each local group's partial sum, without the bias.
  exec::Tensors of_groups(const exec::Tensors& inputs) const;
  /// Adds the bias. Returns [batch, tokens, outputs] for this rank's tokens.
  at::Tensor with_bias(const at::Tensor& sum) const;
  std::vector<exec::CutParameter> cut_parameters(const std::string& name) const;

 private:
  exec::TensorParallelPlace place_;
  std::int64_t in_;
  exec::Tokens tokens_;
};

/// A replicated linear layer: every rank has it and applies it to its own tokens.
class GroupLinearImpl final : public torch::nn::LinearImpl {
 public:
  GroupLinearImpl(std::int64_t in, std::int64_t out, const exec::TensorParallelPlace& place,
                  bool has_bias, exec::Tokens tokens);

  /// Takes [batch, tokens, inputs] of this rank's tokens.
  at::Tensor forward(const at::Tensor& input) const;

 private:
  exec::TensorParallelPlace place_;
  exec::Tokens tokens_;
};

/// An embedding split along the vocabulary.
class GroupEmbeddingImpl final : public torch::nn::EmbeddingImpl {
 public:
  /// `padding`: a token whose row gets no gradient here; -1: none.
  GroupEmbeddingImpl(std::int64_t words, std::int64_t width, const exec::TensorParallelPlace& place,
                     exec::Tokens tokens = exec::Tokens::Whole, std::int64_t padding = -1);

  /// Maps int64 [batch, tokens] to [batch, tokens, width]. Throws InputError if a token is outside
  /// the vocabulary.
  at::Tensor rows_of(const at::Tensor& tokens) const;
  /// Throws InputError if a token, in CPU memory, is outside the vocabulary.
  void require_words(const at::Tensor& tokens) const;
  std::vector<exec::CutParameter> cut_parameters(const std::string& name) const;

 private:
  exec::TensorParallelPlace place_;
  std::int64_t words_;
  exec::Tokens tokens_;
  std::int64_t padding_;
};

/// Learned position embeddings, replicated on all ranks.
class GroupPositionsImpl final : public torch::nn::EmbeddingImpl {
 public:
  GroupPositionsImpl(std::int64_t longest, std::int64_t width,
                     const exec::TensorParallelPlace& place,
                     exec::Tokens tokens = exec::Tokens::Whole);

  /// Adds the position embeddings: [batch, tokens, width], for this rank's tokens. `places` is
  /// int64 [batch, all tokens], the position of each token. Undefined: positions start at 0.
  at::Tensor added_to(const at::Tensor& rows, const at::Tensor& places = {}) const;

 private:
  exec::TensorParallelPlace place_;
  exec::Tokens tokens_;
};

/// Options of a norm over the last dimension.
struct NormSizes {
  plan::NormKind kind = plan::NormKind::Layer;
  std::int64_t width = 0;
  double epsilon = 1e-5;
  bool plus_one = false;  // multiplies by 1 + weight; the weight starts at zero
};
inline NormSizes norm_of(const plan::TransformerConfig& config, std::int64_t width) {
  return {config.norm, width, config.norm_epsilon, config.norm_plus_one};
}

/// A norm, whose parameters are replicated on all ranks.
class GroupNormImpl final : public torch::nn::Module {
 public:
  GroupNormImpl(const NormSizes& sizes, const exec::TensorParallelPlace& place,
                exec::Tokens tokens = exec::Tokens::Whole);

  /// Takes and returns [batch, tokens, width] of this rank's tokens.
  at::Tensor forward(const at::Tensor& input) const;
  /// Normalizes one input per local group.
  exec::Tensors of_groups(const exec::Tensors& inputs) const;

 private:
  at::Tensor normed(const at::Tensor& input, const at::Tensor& weight,
                    const at::Tensor& bias) const;

  NormSizes sizes_;
  at::Tensor weight_, bias_;  // a root-mean-square norm has no bias
  exec::TensorParallelPlace place_;
  exec::Tokens tokens_;
};

TORCH_MODULE(ColumnLinear);
TORCH_MODULE(RowLinear);
TORCH_MODULE(GroupLinear);
TORCH_MODULE(GroupEmbedding);
TORCH_MODULE(GroupPositions);
TORCH_MODULE(GroupNorm);

/// Returns the spec of a layer of class `Kind`, constructed from a model's shape, a tensor-parallel
/// rank's place, and the tokens that it holds. Building throws InputError if `faults_of_cut`
/// reports faults for the number of parts, or if tokens do not divide evenly. `kind`: as in
/// LayerSpec.
template <class Kind, class Shape>
exec::LayerSpec layer_with_shards(std::string name, std::string kind, const Shape& shape,
                                  exec::Tokens tokens,
                                  std::vector<std::string> (*faults_of_cut)(const Shape&,
                                                                            int parts)) {
  const auto build_shard =
      [=](const exec::TensorParallelPlace& place) -> std::shared_ptr<exec::Layer> {
    auto faults = faults_of_cut(shape, place.groups);
    if constexpr (requires { shape.sequence; })
      if (tokens == exec::Tokens::Cut && shape.sequence % place.groups != 0)
        faults.push_back("pipeline.sequence_parallel: " + std::to_string(shape.sequence) +
                         " tokens cannot be divided equally into " + std::to_string(place.groups) +
                         " parts");
    if (!faults.empty())
      throw plan::InputError("layer " + name + ": " + faults.front());
    return std::make_shared<Kind>(shape, place, tokens);
  };
  return {.name = name,
          .build =
              [=] {
                return std::make_shared<Kind>(shape, exec::TensorParallelPlace{},
                                              exec::Tokens::Whole);
              },
          .build_shard = build_shard,
          .kind = std::move(kind) + (tokens == exec::Tokens::Cut ? ", tokens cut" : "")};
}

}  // namespace pipewright::engine
