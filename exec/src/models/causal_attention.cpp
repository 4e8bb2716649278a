#include "pipewright/exec/models/causal_attention.hpp"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <optional>

#include "fused_attention.hpp"
#include "pipewright/exec/training/run_again.hpp"

namespace pipewright::exec {
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
    return capped_attention(for_each_query(qkv), how, scale);
  const std::int64_t length = qkv[0].size(2);
  const bool has_mask = (how.window > 0 && how.window < length) || how.documents.defined();
  const auto mask = [how, has_mask, length](const at::Tensor& like) {
    return has_mask ? std::optional(seen_tokens(length, how, like)) : std::nullopt;
  };
  return fused_attention(qkv, mask, how.scale > 0 ? std::optional(scale) : std::nullopt);
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
  const auto core = [how](const Tensors& qkv) { return attended(qkv, how); };
  const Tensors qkv{by_head(queries, queries.size(-1)), by_head(keys, keys.size(-1)),
                    by_head(values, keys.size(-1))};
  const at::Tensor mixed = core_again ? run_again_in_backward(core, qkv) : core(qkv);
  return mixed.transpose(1, 2).flatten(2);
}

}  // namespace pipewright::exec
