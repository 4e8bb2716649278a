#include "pipewright/exec/models/group_layers.hpp"

#include <ATen/ATen.h>

#include "pipewright/exec/training/cut_parameter.hpp"
#include "pipewright/exec/training/group_indices.hpp"
#include "pipewright/exec/training/group_sums.hpp"
#include "pipewright/exec/training/run_again.hpp"

namespace pipewright::exec {
namespace {

std::int64_t length_on_shard(std::int64_t length, const ShardPlace& place, int blocks = 1) {
  const std::int64_t block = length / blocks;
  return blocks * (border_of_part(block, place.index + 1, place.count) -
                   border_of_part(block, place.index, place.count));
}

}  // namespace

ColumnLinearImpl::ColumnLinearImpl(std::int64_t in, std::int64_t out, const ShardPlace& place,
                                   int blocks)
    : LinearImpl(in, length_on_shard(out, place, blocks)),
      place_(place),
      out_(out),
      blocks_(blocks) {}

std::vector<CutParameter> ColumnLinearImpl::cut_parameters(const std::string& name) const {
  return {{.name = name + ".weight", .dimension = 0, .blocks = blocks_, .whole = out_},
          {.name = name + ".bias", .dimension = 0, .blocks = blocks_, .whole = out_}};
}

Tensors ColumnLinearImpl::of_groups(const Tensors& inputs) const {
  const auto cuts = cut_parameters("");
  const Tensors weights = group_parts(weight, cuts[0], place_);
  const Tensors biases = group_parts(bias, cuts[1], place_);
  Tensors outputs;
  for (std::size_t own = 0; own < weights.size(); ++own)
    outputs.push_back(at::linear(inputs.at(own), weights[own], biases[own]));
  return outputs;
}

RowLinearImpl::RowLinearImpl(std::int64_t in, std::int64_t out, const ShardPlace& place)
    : LinearImpl(length_on_shard(in, place), out), place_(place), in_(in) {}

std::vector<CutParameter> RowLinearImpl::cut_parameters(const std::string& name) const {
  return {{.name = name + ".weight", .dimension = 1, .whole = in_}};
}

at::Tensor RowLinearImpl::sum_over(const Tensors& inputs) const {
  if (place_.groups == 1)
    return at::linear(inputs.front(), weight, bias);
  const Tensors weights = group_parts(weight, cut_parameters("").front(), place_);
  Tensors outputs;
  for (std::size_t own = 0; own < weights.size(); ++own)
    outputs.push_back(at::linear(inputs.at(own), weights[own]));
  return sum_over_groups(outputs, place_) + bias;
}

GroupEmbeddingImpl::GroupEmbeddingImpl(std::int64_t words, std::int64_t width,
                                       const ShardPlace& place)
    : EmbeddingImpl(length_on_shard(words, place), width), place_(place), words_(words) {}

std::vector<CutParameter> GroupEmbeddingImpl::cut_parameters(const std::string& name) const {
  return {{.name = name + ".weight", .dimension = 0, .whole = words_}};
}

at::Tensor GroupEmbeddingImpl::rows_of(const at::Tensor& tokens) const {
  if (place_.groups == 1)
    return at::embedding(weight, tokens);
  require_in_vocabulary("tokens", tokens, words_);
  const Tensors tables = group_parts(weight, cut_parameters("").front(), place_);
  Tensors rows;
  for (const at::Tensor& table : tables) {
    const int group =
        place_.index * static_cast<int>(tables.size()) + static_cast<int>(rows.size());
    const auto [local, elsewhere] = indices_in_group(tokens, words_, group, place_.groups);
    rows.push_back(at::embedding(table, local).masked_fill(elsewhere.unsqueeze(-1), 0));
  }
  return sum_over_groups(rows, place_);
}

at::Tensor causal_attention(const at::Tensor& queries, const at::Tensor& keys,
                            const at::Tensor& values, std::int64_t width, bool core_again) {
  const auto by_head = [&](const at::Tensor& part) {
    return part.view({part.size(0), part.size(1), -1, width}).transpose(1, 2);
  };
  const auto core = [](const Tensors& qkv) {
    const std::int64_t shared_by = qkv[0].size(1) / qkv[1].size(1);
    const auto for_each_query = [&](const at::Tensor& part) {
      return shared_by == 1 ? part : part.repeat_interleave(shared_by, /*dim=*/1);
    };
    return at::scaled_dot_product_attention(qkv[0], for_each_query(qkv[1]), for_each_query(qkv[2]),
                                            /*attn_mask=*/{}, /*dropout_p=*/0.0,
                                            /*is_causal=*/true);
  };
  const Tensors qkv{by_head(queries), by_head(keys), by_head(values)};
  const at::Tensor mixed = core_again ? run_again_in_backward(core, qkv) : core(qkv);
  return mixed.transpose(1, 2).reshape(queries.sizes());
}

}  // namespace pipewright::exec
