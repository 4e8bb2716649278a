#include "pipewright/engine/models/group_layers.hpp"

#include <ATen/ATen.h>

#include "pipewright/exec/training/cut_parameter.hpp"
#include "pipewright/exec/training/group_indices.hpp"
#include "pipewright/exec/training/group_sums.hpp"
#include "pipewright/exec/training/own_memory.hpp"
#include "root_norm.hpp"

namespace pipewright::engine {
namespace {

std::int64_t length_on_shard(std::int64_t length, const exec::TensorParallelPlace& place,
                             int blocks = 1) {
  const std::int64_t block = length / blocks;
  return blocks * (exec::border_of_part(block, place.index + 1, place.count) -
                   exec::border_of_part(block, place.index, place.count));
}

/// Applies `part` to the tokens of each local group, in order. In serial training, too, each
/// group's tokens are a separate tensor. Then gradients of replicated parameters are summed in the
/// same order, and the gradient of one group is complete before another is added to it.
template <class Part>
at::Tensor by_own_tokens(const at::Tensor& value, const exec::TensorParallelPlace& place,
                         const Part& part) {
  const int own = place.groups / place.count;
  if (own == 1)
    return exec::with_own_gradient(part(exec::with_own_gradient(value), std::size_t{0}));
  exec::Tensors parts;
  for (const at::Tensor& tokens : value.chunk(own, 1))
    parts.push_back(
        exec::with_own_gradient(part(tokens.clone(at::MemoryFormat::Contiguous), parts.size())));
  return at::cat(parts, 1);
}

}  // namespace

ColumnLinearImpl::ColumnLinearImpl(std::int64_t in, std::int64_t out,
                                   const exec::TensorParallelPlace& place, int blocks,
                                   bool has_bias)
    : LinearImpl(torch::nn::LinearOptions(in, length_on_shard(out, place, blocks)).bias(has_bias)),
      place_(place),
      out_(out),
      blocks_(blocks) {}

std::vector<exec::CutParameter> ColumnLinearImpl::cut_parameters(const std::string& name) const {
  std::vector<exec::CutParameter> cuts{
      {.name = name + ".weight", .dimension = 0, .blocks = blocks_, .whole = out_}};
  if (bias.defined())
    cuts.push_back({.name = name + ".bias", .dimension = 0, .blocks = blocks_, .whole = out_});
  return cuts;
}

exec::Tensors ColumnLinearImpl::of_groups(const exec::Tensors& inputs) const {
  const auto cuts = cut_parameters("");
  const exec::Tensors weights = exec::group_parts(weight, cuts[0], place_);
  const exec::Tensors biases =
      bias.defined() ? exec::group_parts(bias, cuts[1], place_) : exec::Tensors(weights.size());
  exec::Tensors outputs;
  for (std::size_t own = 0; own < weights.size(); ++own)
    outputs.push_back(at::linear(inputs.at(own), weights[own], biases[own]));
  return outputs;
}

RowLinearImpl::RowLinearImpl(std::int64_t in, std::int64_t out,
                             const exec::TensorParallelPlace& place, bool has_bias,
                             exec::Tokens tokens)
    : LinearImpl(torch::nn::LinearOptions(length_on_shard(in, place), out).bias(has_bias)),
      place_(place),
      in_(in),
      tokens_(tokens) {}

std::vector<exec::CutParameter> RowLinearImpl::cut_parameters(const std::string& name) const {
  return {{.name = name + ".weight", .dimension = 1, .whole = in_}};
}

exec::Tensors RowLinearImpl::of_groups(const exec::Tensors& inputs) const {
  const exec::Tensors weights = exec::group_parts(weight, cut_parameters("").front(), place_);
  exec::Tensors outputs;
  for (std::size_t own = 0; own < weights.size(); ++own)
    outputs.push_back(at::linear(inputs.at(own), weights[own]));
  return outputs;
}

at::Tensor RowLinearImpl::with_bias(const at::Tensor& sum) const {
  if (!bias.defined() || tokens_ == exec::Tokens::Whole)
    return bias.defined() ? sum + bias : sum;
  const exec::Tensors biases = for_own_groups(bias, place_);
  return by_own_tokens(sum, place_,
                       [&](const at::Tensor& own, std::size_t g) { return own + biases[g]; });
}

at::Tensor RowLinearImpl::sum_over(const exec::Tensors& inputs) const {
  if (place_.groups == 1)
    return at::linear(inputs.front(), weight, bias);
  return with_bias(exec::sum_over_groups(of_groups(inputs), place_, tokens_));
}

GroupLinearImpl::GroupLinearImpl(std::int64_t in, std::int64_t out,
                                 const exec::TensorParallelPlace& place, bool has_bias,
                                 exec::Tokens tokens)
    : LinearImpl(torch::nn::LinearOptions(in, out).bias(has_bias)),
      place_(place),
      tokens_(tokens) {}

at::Tensor GroupLinearImpl::forward(const at::Tensor& input) const {
  if (tokens_ == exec::Tokens::Whole)
    return at::linear(input, weight, bias);
  const exec::Tensors weights = for_own_groups(weight, place_);
  const exec::Tensors biases =
      bias.defined() ? for_own_groups(bias, place_) : exec::Tensors(weights.size());
  return by_own_tokens(input, place_, [&](const at::Tensor& own, std::size_t g) {
    return at::linear(own, weights[g], biases[g]);
  });
}

GroupEmbeddingImpl::GroupEmbeddingImpl(std::int64_t words, std::int64_t width,
                                       const exec::TensorParallelPlace& place, exec::Tokens tokens,
                                       std::int64_t padding)
    : EmbeddingImpl(length_on_shard(words, place), width),
      place_(place),
      words_(words),
      tokens_(tokens),
      padding_(padding) {}

std::vector<exec::CutParameter> GroupEmbeddingImpl::cut_parameters(const std::string& name) const {
  return {{.name = name + ".weight", .dimension = 0, .whole = words_}};
}

void GroupEmbeddingImpl::require_words(const at::Tensor& tokens) const {
  exec::require_in_vocabulary("tokens", tokens, words_);
}

at::Tensor GroupEmbeddingImpl::rows_of(const at::Tensor& tokens) const {
  require_words(tokens);
  if (place_.groups == 1)
    return at::embedding(weight, tokens, padding_);
  const exec::Tensors tables = exec::group_parts(weight, cut_parameters("").front(), place_);
  exec::Tensors rows;
  for (const at::Tensor& table : tables) {
    const int group =
        place_.index * static_cast<int>(tables.size()) + static_cast<int>(rows.size());
    const auto [local, elsewhere] = exec::indices_in_group(tokens, words_, group, place_.groups);
    const std::int64_t begin = exec::border_of_part(words_, group, place_.groups);
    const bool has_padding = padding_ >= begin && padding_ < begin + table.size(0);
    rows.push_back(at::embedding(table, local, has_padding ? padding_ - begin : -1)
                       .masked_fill(elsewhere.unsqueeze(-1), 0));
  }
  return exec::sum_over_groups(rows, place_, tokens_);
}

GroupPositionsImpl::GroupPositionsImpl(std::int64_t longest, std::int64_t width,
                                       const exec::TensorParallelPlace& place, exec::Tokens tokens)
    : EmbeddingImpl(longest, width), place_(place), tokens_(tokens) {}

at::Tensor GroupPositionsImpl::added_to(const at::Tensor& rows, const at::Tensor& places) const {
  const auto plus = [&](const at::Tensor& own, const at::Tensor& table, std::int64_t part) {
    const std::int64_t begin = part * own.size(1);
    return own + at::embedding(table, places.defined()
                                          ? places.narrow(1, begin, own.size(1))
                                          : at::arange(begin, begin + own.size(1),
                                                       own.options().dtype(at::kLong)));
  };
  if (tokens_ == exec::Tokens::Whole)
    return plus(rows, weight, 0);
  const exec::Tensors tables = for_own_groups(weight, place_);
  const auto first = static_cast<std::size_t>(place_.index) * tables.size();
  return by_own_tokens(rows, place_, [&](const at::Tensor& own, std::size_t g) {
    return plus(own, tables[g], static_cast<std::int64_t>(first + g));
  });
}

GroupNormImpl::GroupNormImpl(const NormSizes& sizes, const exec::TensorParallelPlace& place,
                             exec::Tokens tokens)
    : sizes_(sizes),
      weight_(register_parameter(
          "weight", sizes.plus_one ? at::zeros({sizes.width}) : at::ones({sizes.width}))),
      place_(place),
      tokens_(tokens) {
  if (sizes.kind == plan::NormKind::Layer)
    bias_ = register_parameter("bias", at::zeros({sizes.width}));
}

at::Tensor GroupNormImpl::normed(const at::Tensor& input, const at::Tensor& weight,
                                 const at::Tensor& bias) const {
  return bias.defined() ? at::layer_norm(input, weight.sizes(), weight, bias, sizes_.epsilon)
                        : root_norm(input, weight, sizes_.epsilon, sizes_.plus_one);
}

at::Tensor GroupNormImpl::forward(const at::Tensor& input) const {
  if (tokens_ == exec::Tokens::Whole)
    return normed(input, weight_, bias_);
  const exec::Tensors weights = for_own_groups(weight_, place_);
  const exec::Tensors biases =
      bias_.defined() ? for_own_groups(bias_, place_) : exec::Tensors(weights.size());
  return by_own_tokens(input, place_, [&](const at::Tensor& own, std::size_t g) {
    return normed(own, weights[g], biases[g]);
  });
}

exec::Tensors GroupNormImpl::of_groups(const exec::Tensors& inputs) const {
  const exec::Tensors weights = for_own_groups(weight_, place_);
  const exec::Tensors biases =
      bias_.defined() ? for_own_groups(bias_, place_) : exec::Tensors(weights.size());
  exec::Tensors outputs;
  for (std::size_t own = 0; own < weights.size(); ++own)
    outputs.push_back(normed(inputs.at(own), weights[own], biases[own]));
  return outputs;
}

}  // namespace pipewright::engine
