#include "pipewright/exec/models/group_layers.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <optional>

#include "pipewright/exec/training/cut_parameter.hpp"
#include "pipewright/exec/training/group_indices.hpp"
#include "pipewright/exec/training/group_sums.hpp"
#include "pipewright/exec/training/run_again.hpp"
#include "training/own_memory.hpp"

namespace pipewright::exec {
namespace {

std::int64_t length_on_shard(std::int64_t length, const ShardPlace& place, int blocks = 1) {
  const std::int64_t block = length / blocks;
  return blocks * (border_of_part(block, place.index + 1, place.count) -
                   border_of_part(block, place.index, place.count));
}

/// `part` of the tokens of each group of this shard, in order. In serial training, too, each is a
/// tensor of its own, so that gradients of what all of them meet are added up alike, and what
/// `part` makes of one's gradient is whole before anything is added to it.
template <class Part>
at::Tensor by_own_tokens(const at::Tensor& value, const ShardPlace& place, const Part& part) {
  const int own = place.groups / place.count;
  if (own == 1)
    return with_own_gradient(part(with_own_gradient(value), std::size_t{0}));
  Tensors parts;
  for (const at::Tensor& tokens : value.chunk(own, 1))
    parts.push_back(
        with_own_gradient(part(tokens.clone(at::MemoryFormat::Contiguous), parts.size())));
  return at::cat(parts, 1);
}

}  // namespace

ColumnLinearImpl::ColumnLinearImpl(std::int64_t in, std::int64_t out, const ShardPlace& place,
                                   int blocks, bool has_bias)
    : LinearImpl(torch::nn::LinearOptions(in, length_on_shard(out, place, blocks)).bias(has_bias)),
      place_(place),
      out_(out),
      blocks_(blocks) {}

std::vector<CutParameter> ColumnLinearImpl::cut_parameters(const std::string& name) const {
  std::vector<CutParameter> cuts{
      {.name = name + ".weight", .dimension = 0, .blocks = blocks_, .whole = out_}};
  if (bias.defined())
    cuts.push_back({.name = name + ".bias", .dimension = 0, .blocks = blocks_, .whole = out_});
  return cuts;
}

Tensors ColumnLinearImpl::of_groups(const Tensors& inputs) const {
  const auto cuts = cut_parameters("");
  const Tensors weights = group_parts(weight, cuts[0], place_);
  const Tensors biases =
      bias.defined() ? group_parts(bias, cuts[1], place_) : Tensors(weights.size());
  Tensors outputs;
  for (std::size_t own = 0; own < weights.size(); ++own)
    outputs.push_back(at::linear(inputs.at(own), weights[own], biases[own]));
  return outputs;
}

RowLinearImpl::RowLinearImpl(std::int64_t in, std::int64_t out, const ShardPlace& place,
                             bool has_bias, Tokens tokens)
    : LinearImpl(torch::nn::LinearOptions(length_on_shard(in, place), out).bias(has_bias)),
      place_(place),
      in_(in),
      tokens_(tokens) {}

std::vector<CutParameter> RowLinearImpl::cut_parameters(const std::string& name) const {
  return {{.name = name + ".weight", .dimension = 1, .whole = in_}};
}

Tensors RowLinearImpl::of_groups(const Tensors& inputs) const {
  const Tensors weights = group_parts(weight, cut_parameters("").front(), place_);
  Tensors outputs;
  for (std::size_t own = 0; own < weights.size(); ++own)
    outputs.push_back(at::linear(inputs.at(own), weights[own]));
  return outputs;
}

at::Tensor RowLinearImpl::with_bias(const at::Tensor& sum) const {
  if (!bias.defined() || tokens_ == Tokens::Whole)
    return bias.defined() ? sum + bias : sum;
  const Tensors biases = for_own_groups(bias, place_);
  return by_own_tokens(sum, place_,
                       [&](const at::Tensor& own, std::size_t g) { return own + biases[g]; });
}

at::Tensor RowLinearImpl::sum_over(const Tensors& inputs) const {
  if (place_.groups == 1)
    return at::linear(inputs.front(), weight, bias);
  return with_bias(sum_over_groups(of_groups(inputs), place_, tokens_));
}

GroupLinearImpl::GroupLinearImpl(std::int64_t in, std::int64_t out, const ShardPlace& place,
                                 bool has_bias, Tokens tokens)
    : LinearImpl(torch::nn::LinearOptions(in, out).bias(has_bias)),
      place_(place),
      tokens_(tokens) {}

at::Tensor GroupLinearImpl::forward(const at::Tensor& input) const {
  if (tokens_ == Tokens::Whole)
    return at::linear(input, weight, bias);
  const Tensors weights = for_own_groups(weight, place_);
  const Tensors biases = bias.defined() ? for_own_groups(bias, place_) : Tensors(weights.size());
  return by_own_tokens(input, place_, [&](const at::Tensor& own, std::size_t g) {
    return at::linear(own, weights[g], biases[g]);
  });
}

GroupEmbeddingImpl::GroupEmbeddingImpl(std::int64_t words, std::int64_t width,
                                       const ShardPlace& place, Tokens tokens, std::int64_t padding)
    : EmbeddingImpl(length_on_shard(words, place), width),
      place_(place),
      words_(words),
      tokens_(tokens),
      padding_(padding) {}

std::vector<CutParameter> GroupEmbeddingImpl::cut_parameters(const std::string& name) const {
  return {{.name = name + ".weight", .dimension = 0, .whole = words_}};
}

at::Tensor GroupEmbeddingImpl::rows_of(const at::Tensor& tokens) const {
  if (place_.groups == 1)
    return at::embedding(weight, tokens, padding_);
  require_in_vocabulary("tokens", tokens, words_);
  const Tensors tables = group_parts(weight, cut_parameters("").front(), place_);
  Tensors rows;
  for (const at::Tensor& table : tables) {
    const int group =
        place_.index * static_cast<int>(tables.size()) + static_cast<int>(rows.size());
    const auto [local, elsewhere] = indices_in_group(tokens, words_, group, place_.groups);
    const std::int64_t begin = border_of_part(words_, group, place_.groups);
    const bool has_padding = padding_ >= begin && padding_ < begin + table.size(0);
    rows.push_back(at::embedding(table, local, has_padding ? padding_ - begin : -1)
                       .masked_fill(elsewhere.unsqueeze(-1), 0));
  }
  return sum_over_groups(rows, place_, tokens_);
}

GroupPositionsImpl::GroupPositionsImpl(std::int64_t longest, std::int64_t width,
                                       const ShardPlace& place, Tokens tokens)
    : EmbeddingImpl(longest, width), place_(place), tokens_(tokens) {}

at::Tensor GroupPositionsImpl::added_to(const at::Tensor& rows, const at::Tensor& places) const {
  const auto plus = [&](const at::Tensor& own, const at::Tensor& table, std::int64_t part) {
    const std::int64_t begin = part * own.size(1);
    return own + at::embedding(table, places.defined()
                                          ? places.narrow(1, begin, own.size(1))
                                          : at::arange(begin, begin + own.size(1),
                                                       own.options().dtype(at::kLong)));
  };
  if (tokens_ == Tokens::Whole)
    return plus(rows, weight, 0);
  const Tensors tables = for_own_groups(weight, place_);
  const auto first = static_cast<std::size_t>(place_.index) * tables.size();
  return by_own_tokens(rows, place_, [&](const at::Tensor& own, std::size_t g) {
    return plus(own, tables[g], static_cast<std::int64_t>(first + g));
  });
}

GroupNormImpl::GroupNormImpl(const NormSizes& sizes, const ShardPlace& place, Tokens tokens)
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
  if (bias.defined())
    return at::layer_norm(input, weight.sizes(), weight, bias, sizes_.epsilon);
  if (sizes_.plus_one)  // a weight near 0 is finer in 16 bits than one near 1
    return at::rms_norm(input.to(at::kFloat), weight.sizes(), weight.to(at::kFloat) + 1,
                        sizes_.epsilon)
        .to(input.scalar_type());
  if (input.scalar_type() == at::kFloat)
    return at::rms_norm(input, weight.sizes(), weight, sizes_.epsilon);
  // In 16 bits rounded before it is multiplied, as models were trained.
  return at::rms_norm(input, weight.sizes(), {}, sizes_.epsilon) * weight;
}

at::Tensor GroupNormImpl::forward(const at::Tensor& input) const {
  if (tokens_ == Tokens::Whole)
    return normed(input, weight_, bias_);
  const Tensors weights = for_own_groups(weight_, place_);
  const Tensors biases = bias_.defined() ? for_own_groups(bias_, place_) : Tensors(weights.size());
  return by_own_tokens(input, place_, [&](const at::Tensor& own, std::size_t g) {
    return normed(own, weights[g], biases[g]);
  });
}

Tensors GroupNormImpl::of_groups(const Tensors& inputs) const {
  const Tensors weights = for_own_groups(weight_, place_);
  const Tensors biases = bias_.defined() ? for_own_groups(bias_, place_) : Tensors(weights.size());
  Tensors outputs;
  for (std::size_t own = 0; own < weights.size(); ++own)
    outputs.push_back(normed(inputs.at(own), weights[own], biases[own]));
  return outputs;
}

namespace {

/// True where a token is seen: the query's own, and those before it within the window and the
/// document. [sequence, sequence], or [batch, 1, sequence, sequence].
at::Tensor seen_tokens(std::int64_t length, const Attending& how, const at::Tensor& like) {
  const at::Tensor all = at::ones({length, length}, like.options().dtype(at::kBool));
  const at::Tensor before = all.tril();
  const at::Tensor seen =
      how.window > 0 && how.window < length ? before.triu(1 - how.window) : before;
  if (!how.documents.defined())
    return seen;
  return (how.documents.unsqueeze(1) == how.documents.unsqueeze(2)).logical_and(seen).unsqueeze(1);
}

/// Scores are written: they are bent before they are weighed.
at::Tensor capped_attention(const Tensors& qkv, const Attending& how, double scale) {
  const at::Tensor scores = at::matmul(qkv[0], qkv[1].transpose(2, 3)) * scale;
  const at::Tensor bent = at::tanh(scores / how.cap) * how.cap;
  const at::Tensor unseen = seen_tokens(scores.size(-1), how, scores).logical_not();
  const at::Tensor weights = at::softmax(
      bent.masked_fill(unseen, -std::numeric_limits<double>::infinity()), -1, at::kFloat);
  return at::matmul(weights.to(qkv[2].scalar_type()), qkv[2]);
}

at::Tensor attended(const Tensors& qkv, const Attending& how) {
  const double scale = how.scale > 0 ? how.scale : 1 / std::sqrt(static_cast<double>(how.width));
  if (how.cap > 0)
    return capped_attention(qkv, how, scale);
  const std::int64_t length = qkv[0].size(2);
  const bool has_mask = (how.window > 0 && how.window < length) || how.documents.defined();
  const std::optional<at::Tensor> mask =
      has_mask ? std::optional(seen_tokens(length, how, qkv[0])) : std::nullopt;
  return at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], mask, /*dropout_p=*/0.0,
                                          /*is_causal=*/!has_mask,
                                          how.scale > 0 ? std::optional(scale) : std::nullopt);
}

}  // namespace

at::Tensor places_in_documents(const at::Tensor& documents) {
  const at::Tensor places = at::arange(documents.size(1), documents.options()).expand_as(documents);
  const at::Tensor begins = documents.slice(1, 1) != documents.slice(1, 0, -1);
  const at::Tensor first = places * at::constant_pad_nd(begins, {1, 0}).to(at::kLong);
  return places - std::get<0>(first.cummax(1));
}

at::Tensor causal_attention(const at::Tensor& queries, const at::Tensor& keys,
                            const at::Tensor& values, const Attending& how, bool core_again) {
  const auto by_head = [&](const at::Tensor& part, std::int64_t channels) {
    const std::int64_t heads = channels / how.width;
    return part.view({part.size(0), part.size(1), heads, -1}).transpose(1, 2);
  };
  const auto core = [how](const Tensors& qkv) {
    const std::int64_t shared_by = qkv[0].size(1) / qkv[1].size(1);
    const auto for_each_query = [&](const at::Tensor& part) {
      return shared_by == 1 ? part : part.repeat_interleave(shared_by, /*dim=*/1);
    };
    return attended({qkv[0], for_each_query(qkv[1]), for_each_query(qkv[2])}, how);
  };
  const Tensors qkv{by_head(queries, queries.size(-1)), by_head(keys, keys.size(-1)),
                    by_head(values, keys.size(-1))};
  const at::Tensor mixed = core_again ? run_again_in_backward(core, qkv) : core(qkv);
  return mixed.transpose(1, 2).flatten(2);
}

}  // namespace pipewright::exec
