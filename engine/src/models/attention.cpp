#include "attention.hpp"

#include <ATen/ATen.h>

#include "feed_forward.hpp"

namespace pipewright::engine {
namespace {

using plan::TransformerConfig;

AttentionOptions attending(const TransformerConfig& c, int layer) {
  return {.width = std::int64_t{c.head_channels} + c.rope_channels,
          .window = c.has_window(layer) ? c.window : 0,
          .scale = c.score_scale,
          .cap = c.score_cap};
}

ColumnLinear columns(std::int64_t in, std::int64_t out, const exec::TensorParallelPlace& place,
                     bool has_bias) {
  return ColumnLinear(in, out, place, /*blocks=*/1, has_bias);
}

AttentionOptions within(AttentionOptions how, const at::Tensor& documents) {
  how.documents = documents;
  return how;
}

MixHeads of_whole(AttentionOptions how, bool core_again) {
  return [how = std::move(how), core_again](std::size_t, const at::Tensor& queries,
                                            const at::Tensor& keys, const at::Tensor& values) {
    return causal_attention(queries, keys, values, how, core_again);
  };
}

MixHeads of_next(const AttentionOptions& how, KvCache& memory) {
  return [&](std::size_t group, const at::Tensor& queries, const at::Tensor& keys,
             const at::Tensor& values) {
    return next_attention(queries, keys, values, how, memory, group);
  };
}

PartOfSequence next_part(const KvCache& memory) {
  return RotaryEmbedding::Part{memory.tokens(), memory.room()};
}

/// Returns the norm options of latent attention, whose ε is independent of the model's other norms.
NormSizes latent_norm_of(const TransformerConfig& c, std::int64_t width) {
  NormSizes sizes = norm_of(c, width);
  sizes.epsilon = 1e-6;
  return sizes;
}

RowLinear projection(const TransformerConfig& c, const exec::TensorParallelPlace& place,
                     exec::Tokens tokens) {
  return RowLinear(std::int64_t{c.heads} * c.value_channels, c.hidden, place, c.projection_bias,
                   tokens);
}

}  // namespace

AttentionImpl::AttentionImpl(const TransformerConfig& c, int layer,
                             const exec::TensorParallelPlace& place, exec::Tokens tokens)
    : place_(place),
      tokens_(tokens),
      how_(attending(c, layer)),
      turns_(!c.learned_positions),
      rotation_(c.rotary, c.has_window(layer)),
      query_(register_module("query", columns(c.hidden, std::int64_t{c.heads} * c.head_channels,
                                              place, c.query_bias))),
      key_(register_module("key", columns(c.hidden, std::int64_t{c.kv_heads} * c.head_channels,
                                          place, c.query_bias))),
      value_(register_module("value", columns(c.hidden, std::int64_t{c.kv_heads} * c.value_channels,
                                              place, c.query_bias))),
      project_(register_module("project", projection(c, place, tokens))) {
  if (!c.head_norms)
    return;
  query_norm_ = register_module("query_norm", GroupNorm(norm_of(c, c.head_channels), place));
  key_norm_ = register_module("key_norm", GroupNorm(norm_of(c, c.head_channels), place));
}

at::Tensor AttentionImpl::forward(const at::Tensor& input, const at::Tensor& documents,
                                  bool core_again) {
  return mixed(input, {}, of_whole(within(how_, documents), core_again));
}

at::Tensor AttentionImpl::decode_step(const at::Tensor& input, KvCache& memory) {
  return mixed(input, next_part(memory), of_next(how_, memory));
}

at::Tensor AttentionImpl::mixed(const at::Tensor& input, const PartOfSequence& part,
                                const MixHeads& mix) {
  const exec::Tensors inputs = for_own_groups(input, place_, tokens_);
  const exec::Tensors queries = placed(query_->of_groups(inputs), query_norm_, part);
  const exec::Tensors keys = placed(key_->of_groups(inputs), key_norm_, part);
  const exec::Tensors values = value_->of_groups(inputs);
  exec::Tensors all;
  for (std::size_t own = 0; own < queries.size(); ++own)
    all.push_back(mix(own, queries[own], keys[own], values[own]));
  return project_->sum_over(all);
}

std::vector<exec::CutParameter> AttentionImpl::cut_parameters(const std::string& name) const {
  std::vector<exec::CutParameter> all;
  add_cuts(all, query_->cut_parameters(name + ".query"));
  add_cuts(all, key_->cut_parameters(name + ".key"));
  add_cuts(all, value_->cut_parameters(name + ".value"));
  add_cuts(all, project_->cut_parameters(name + ".project"));
  return all;
}

/// Applies the per-head norm and the rotary embedding, if the model has them.
exec::Tensors AttentionImpl::placed(exec::Tensors groups, const GroupNorm& norm,
                                    const PartOfSequence& part) {
  for (at::Tensor& group : groups)
    group = group.view({group.size(0), group.size(1), -1, how_.width});
  if (!norm.is_empty())
    groups = norm->of_groups(groups);
  for (at::Tensor& group : groups)
    group = (turns_ ? rotation_(group, part) : group).flatten(2);
  return groups;
}

LatentAttentionImpl::LatentAttentionImpl(const TransformerConfig& c, int layer,
                                         const exec::TensorParallelPlace& place,
                                         exec::Tokens tokens)
    : place_(place),
      tokens_(tokens),
      how_(attending(c, layer)),
      rank_(c.kv_rank),
      channels_(c.head_channels),
      turning_(c.rope_channels),
      values_(c.value_channels),
      rotation_(c.rotary, c.has_window(layer)),
      latent_down_(register_module(
          "latent_down", GroupLinear(c.hidden, rank_ + turning_, place, c.query_bias, tokens))),
      query_(register_module("query", columns(c.q_rank > 0 ? c.q_rank : c.hidden,
                                              c.heads * how_.width, place, /*has_bias=*/false))),
      latent_up_(register_module("latent_up", columns(rank_, c.heads * (channels_ + values_), place,
                                                      /*has_bias=*/false))),
      project_(register_module("project", projection(c, place, tokens))) {
  if (c.q_rank > 0)
    query_down_ =
        register_module("query_down", GroupLinear(c.hidden, c.q_rank, place, c.query_bias, tokens));
  if (!c.latent_norms)
    return;
  latent_norm_ = register_module("latent_norm", GroupNorm(latent_norm_of(c, rank_), place, tokens));
  if (c.q_rank > 0)
    query_norm_ =
        register_module("query_norm", GroupNorm(latent_norm_of(c, c.q_rank), place, tokens));
}

at::Tensor LatentAttentionImpl::forward(const at::Tensor& input, const at::Tensor& documents,
                                        bool core_again) {
  return mixed(input, {}, of_whole(within(how_, documents), core_again));
}

at::Tensor LatentAttentionImpl::decode_step(const at::Tensor& input, KvCache& memory) {
  return mixed(input, next_part(memory), of_next(how_, memory));
}

at::Tensor LatentAttentionImpl::mixed(const at::Tensor& input, const PartOfSequence& part,
                                      const MixHeads& mix) {
  const auto normed = [](const GroupNorm& norm, const at::Tensor& value) {
    return norm.is_empty() ? value : norm->forward(value);
  };
  const at::Tensor for_queries =
      query_down_.is_empty() ? input : normed(query_norm_, query_down_->forward(input));
  const auto latent = latent_down_->forward(input).split_with_sizes({rank_, turning_}, -1);
  const exec::Tensors queries = query_->of_groups(for_own_groups(for_queries, place_, tokens_));
  const exec::Tensors keys_and_values = latent_up_->of_groups(
      for_own_groups(normed(latent_norm_, latent[0].contiguous()), place_, tokens_));
  const exec::Tensors shared_keys = for_own_groups(latent[1].contiguous(), place_, tokens_);
  exec::Tensors all;
  for (std::size_t own = 0; own < queries.size(); ++own) {
    const Heads heads = heads_of(queries[own], keys_and_values[own], shared_keys[own], part);
    all.push_back(mix(own, heads.queries, heads.keys, heads.values));
  }
  return project_->sum_over(all);
}

/// Assembles the heads of one group.
LatentAttentionImpl::Heads LatentAttentionImpl::heads_of(const at::Tensor& queries,
                                                         const at::Tensor& keys_and_values,
                                                         const at::Tensor& shared_key,
                                                         const PartOfSequence& part) {
  const auto parts = [](const at::Tensor& value, std::int64_t first, std::int64_t second) {
    return value.view({value.size(0), value.size(1), -1, first + second})
        .split_with_sizes({first, second}, -1);
  };
  const auto of_queries = parts(queries, channels_, turning_);
  const auto of_latent = parts(keys_and_values, channels_, values_);
  const at::Tensor turned = rotation_(shared_key.unsqueeze(2), part);
  const at::Tensor of_each_head = turned.expand({-1, -1, of_latent[0].size(2), -1});
  return {at::cat({of_queries[0], rotation_(of_queries[1], part)}, -1).flatten(2),
          at::cat({of_latent[0], of_each_head}, -1).flatten(2), of_latent[1].flatten(2)};
}

std::vector<exec::CutParameter> LatentAttentionImpl::cut_parameters(const std::string& name) const {
  std::vector<exec::CutParameter> all;
  add_cuts(all, query_->cut_parameters(name + ".query"));
  add_cuts(all, latent_up_->cut_parameters(name + ".latent_up"));
  add_cuts(all, project_->cut_parameters(name + ".project"));
  return all;
}

}  // namespace pipewright::engine
