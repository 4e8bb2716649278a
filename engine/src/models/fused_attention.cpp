#include "fused_attention.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>
#include <utility>

namespace pipewright::engine {
namespace {

using torch::autograd::AutogradContext;

struct AttentionConfig final : torch::CustomClassHolder {
  AttentionConfig(SeenMask m, std::optional<double> s) : seen(std::move(m)), scale(s) {}

  /// Returns the mask that is added to the scores.
  std::optional<at::Tensor> mask(const at::Tensor& like) const {
    const auto tokens = seen(like);
    if (!tokens)
      return {};
    return at::zeros(tokens->sizes(), like.options())
        .masked_fill_(tokens->logical_not(), -std::numeric_limits<double>::infinity());
  }

  SeenMask seen;
  std::optional<double> scale;
};

/// Pads the channels with zeros up to `width`.
at::Tensor widened(const at::Tensor& part, std::int64_t width) {
  return part.size(3) == width ? part : at::constant_pad_nd(part, {0, width - part.size(3)});
}

/// Converts to the CPU kernel's layout: keys and values repeated per query head, values as wide as
/// keys.
exec::Tensors for_kernel(const exec::Tensors& qkv) {
  exec::Tensors all = for_each_query(qkv);
  all[2] = widened(all[2], all[0].size(3));
  return all;
}

/// Returns the gradient of `for_each_query` for `part`.
at::Tensor sum_of_shared(const at::Tensor& gradient, const at::Tensor& part) {
  const std::int64_t heads = part.size(1);
  return gradient.size(1) == heads ? gradient : gradient.unflatten(1, {heads, -1}).sum(2);
}

struct FusedOnCpu : torch::autograd::Function<FusedOnCpu> {
  static at::Tensor forward(AutogradContext* context,
                            const c10::intrusive_ptr<AttentionConfig>& how,
                            const at::Tensor& queries, const at::Tensor& keys,
                            const at::Tensor& values) {
    const exec::Tensors qkv = for_kernel({queries, keys, values});
    const auto mask = how->mask(queries);
    auto [mixed, sums] = at::_scaled_dot_product_flash_attention_for_cpu(
        qkv[0], qkv[1], qkv[2], /*dropout_p=*/0.0, /*is_causal=*/!mask, mask, how->scale);
    if (values.size(3) < mixed.size(3))  // token-major, as the kernel returns it
      mixed = mixed.transpose(1, 2).narrow(3, 0, values.size(3)).contiguous().transpose(1, 2);
    context->saved_data["how"] = c10::IValue::make_capsule(how);
    context->save_for_backward({queries, keys, values, mixed, sums});
    return mixed;
  }

  static exec::Tensors backward(AutogradContext* context, const exec::Tensors& gradients) {
    const auto how =
        c10::static_intrusive_pointer_cast<AttentionConfig>(context->saved_data["how"].toCapsule());
    const exec::Tensors kept = context->get_saved_variables();
    const exec::Tensors qkv = for_kernel({kept[0], kept[1], kept[2]});
    const std::int64_t width = qkv[0].size(3);
    const auto mask = how->mask(kept[0]);
    const auto [queries, keys, values] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        widened(gradients.front(), width), qkv[0], qkv[1], qkv[2], widened(kept[3], width), kept[4],
        /*dropout_p=*/0.0, /*is_causal=*/!mask, mask, how->scale);
    return {at::Tensor(), queries, sum_of_shared(keys, kept[1]),
            sum_of_shared(values, kept[2]).narrow(3, 0, kept[2].size(3))};
  }
};

}  // namespace

exec::Tensors for_each_query(const exec::Tensors& qkv) {
  const std::int64_t shared_by = qkv[0].size(1) / qkv[1].size(1);
  const auto repeated = [&](const at::Tensor& part) {
    return shared_by == 1 ? part : part.repeat_interleave(shared_by, /*dim=*/1);
  };
  return {qkv[0], repeated(qkv[1]), repeated(qkv[2])};
}

at::Tensor fused_attention(const exec::Tensors& qkv, const SeenMask& seen,
                           std::optional<double> scale) {
  if (qkv[0].is_cpu() && qkv[2].size(3) <= qkv[0].size(3))
    return FusedOnCpu::apply(c10::make_intrusive<AttentionConfig>(seen, scale), qkv[0], qkv[1],
                             qkv[2]);
  const exec::Tensors all = for_each_query(qkv);
  const auto mask = seen(qkv[0]);
  return at::scaled_dot_product_attention(all[0], all[1], all[2], mask, /*dropout_p=*/0.0,
                                          /*is_causal=*/!mask, scale);
}

}  // namespace pipewright::engine
