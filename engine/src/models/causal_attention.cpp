#include "pipewright/engine/models/causal_attention.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

#include "fused_attention.hpp"
#include "pipewright/exec/training/run_again.hpp"

namespace pipewright::engine {
namespace {

/// Returns the mask, true where a token is visible: the query itself and the tokens before it
/// within the window and the document. [sequence, sequence], or [batch, 1, sequence, sequence].
at::Tensor seen_tokens(std::int64_t length, const AttentionOptions& how, const at::Tensor& like) {
  const at::Tensor all = at::ones({length, length}, like.options().dtype(at::kBool));
  const at::Tensor before = all.tril();
  const at::Tensor seen =
      how.window > 0 && how.window < length ? before.triu(1 - how.window) : before;
  if (!how.documents.defined())
    return seen;
  return (how.documents.unsqueeze(1) == how.documents.unsqueeze(2)).logical_and(seen).unsqueeze(1);
}

/// Materializes the scores, because they are capped before the softmax.
at::Tensor bent_scores(const exec::Tensors& qkv, const AttentionOptions& how, double scale) {
  const at::Tensor scores = at::matmul(qkv[0], qkv[1].transpose(2, 3)) * scale;
  return at::tanh(scores / how.cap) * how.cap;
}

at::Tensor weighed(const at::Tensor& scores, const at::Tensor& values) {
  return at::matmul(at::softmax(scores, -1, at::kFloat).to(values.scalar_type()), values);
}

at::Tensor capped_attention(const exec::Tensors& qkv, const AttentionOptions& how, double scale) {
  const at::Tensor bent = bent_scores(qkv, how, scale);
  const at::Tensor unseen = seen_tokens(bent.size(-1), how, bent).logical_not();
  return weighed(bent.masked_fill(unseen, -std::numeric_limits<double>::infinity()), qkv[2]);
}

double scale_of(const AttentionOptions& how) {
  return how.scale > 0 ? how.scale : 1 / std::sqrt(static_cast<double>(how.width));
}

at::Tensor attended(const exec::Tensors& qkv, const AttentionOptions& how) {
  const double scale = scale_of(how);
  if (how.cap > 0)
    return capped_attention(for_each_query(qkv), how, scale);
  const std::int64_t length = qkv[0].size(2);
  const bool has_mask = (how.window > 0 && how.window < length) || how.documents.defined();
  const auto mask = [how, has_mask, length](const at::Tensor& like) {
    return has_mask ? std::optional(seen_tokens(length, how, like)) : std::nullopt;
  };
  return fused_attention(qkv, mask, how.scale > 0 ? std::optional(scale) : std::nullopt);
}

/// Computes attention of one token, which sees all given keys. Queries that share a key head are
/// passed to the kernel as if they were tokens.
at::Tensor attended_by_last(const at::Tensor& queries, const at::Tensor& keys,
                            const at::Tensor& values, const AttentionOptions& how) {
  const std::int64_t heads = queries.size(1);
  const exec::Tensors qkv{queries.reshape({queries.size(0), keys.size(1), -1, queries.size(3)}),
                          keys, values};
  const at::Tensor mixed =
      how.cap > 0 ? weighed(bent_scores(qkv, how, scale_of(how)), values)
                  : at::scaled_dot_product_attention(qkv[0], keys, values, {}, /*dropout_p=*/0.0,
                                                     /*is_causal=*/false, scale_of(how));
  return mixed.reshape({queries.size(0), heads, 1, -1});
}

/// Splits queries, keys and values by head: [batch, heads, tokens, channels].
exec::Tensors by_head(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                      const AttentionOptions& how) {
  const auto heads_of = [&](const at::Tensor& part, std::int64_t channels) {
    const std::int64_t heads = channels / how.width;
    return part.view({part.size(0), part.size(1), heads, -1}).transpose(1, 2);
  };
  return {heads_of(queries, queries.size(-1)), heads_of(keys, keys.size(-1)),
          heads_of(values, keys.size(-1))};
}

}  // namespace

at::Tensor places_in_documents(const at::Tensor& documents) {
  const at::Tensor places = at::arange(documents.size(1), documents.options()).expand_as(documents);
  const at::Tensor begins = documents.slice(1, 1) != documents.slice(1, 0, -1);
  const at::Tensor first = places * at::constant_pad_nd(begins, {1, 0}).to(at::kLong);
  return places - std::get<0>(first.cummax(1));
}

at::Tensor causal_attention(const at::Tensor& queries, const at::Tensor& keys,
                            const at::Tensor& values, const AttentionOptions& how,
                            bool core_again) {
  const auto core = [how](const exec::Tensors& qkv) { return attended(qkv, how); };
  const exec::Tensors qkv = by_head(queries, keys, values, how);
  const at::Tensor mixed = core_again ? exec::recompute_in_backward(core, qkv) : core(qkv);
  return mixed.transpose(1, 2).flatten(2);
}

at::Tensor next_attention(const at::Tensor& queries, const at::Tensor& keys,
                          const at::Tensor& values, const AttentionOptions& how, KvCache& memory,
                          std::size_t group) {
  const exec::Tensors qkv = by_head(queries, keys, values, how);
  auto [all_keys, all_values] = memory.with(group, {qkv[1], qkv[2]});
  if (memory.tokens() == 0)
    return attended(qkv, how).transpose(1, 2).flatten(2);
  if (queries.size(1) != 1)
    throw std::logic_error("after the prompt, a sequence must continue with one token at a time");
  if (const std::int64_t unseen = all_keys.size(2) - how.window; how.window > 0 && unseen > 0) {
    all_keys = all_keys.narrow(2, unseen, how.window);
    all_values = all_values.narrow(2, unseen, how.window);
  }
  return attended_by_last(qkv[0], all_keys, all_values, how).transpose(1, 2).flatten(2);
}

}  // namespace pipewright::engine
