#include "root_norm.hpp"

#include <ATen/ATen.h>
#include <ATen/OpMathType.h>
#include <torch/csrc/autograd/custom_function.h>

#include "pipewright/exec/tensors.hpp"

namespace pipewright::engine {
namespace {

using torch::autograd::AutogradContext;

at::Tensor normed(const at::Tensor& input, const at::Tensor& weight, double epsilon,
                  bool plus_one) {
  if (plus_one)  // near 0, 16-bit weights have a higher resolution than near 1
    return at::rms_norm(input.to(at::kFloat), weight.sizes(), weight.to(at::kFloat) + 1, epsilon)
        .to(input.scalar_type());
  if (input.scalar_type() == at::kFloat)
    return at::rms_norm(input, weight.sizes(), weight, epsilon);
  // 16-bit values are rounded before the multiplication, as models were trained.
  return at::rms_norm(input, weight.sizes(), {}, epsilon) * weight;
}

struct RootNorm : torch::autograd::Function<RootNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input,
                            const at::Tensor& weight, double epsilon, bool plus_one) {
    context->save_for_backward({input, weight});
    context->saved_data["epsilon"] = epsilon;
    context->saved_data["plus_one"] = plus_one;
    return normed(input, weight, epsilon, plus_one);
  }

  /// For u = x r with r = 1 / √(mean(x²) + ε), the gradient g' of u gives r (g' − u mean(g' u)) for
  /// x. A split backward needs one of the two gradients at a time.
  static exec::Tensors backward(AutogradContext* context, const exec::Tensors& gradients) {
    const exec::Tensors kept = context->get_saved_variables();
    const auto wide = at::toOpMathType(kept[0].scalar_type());
    const at::Tensor input = kept[0].to(wide), gradient = gradients.front().to(wide);
    const at::Tensor root = input.square()
                                .mean(-1, /*keepdim=*/true)
                                .add_(context->saved_data["epsilon"].toDouble())
                                .rsqrt_();
    const at::Tensor unit = input * root;
    exec::Tensors found(4);
    if (context->needs_input_grad(0)) {
      at::Tensor weight = kept[1].to(wide);
      if (context->saved_data["plus_one"].toBool())
        weight = weight + 1;
      const at::Tensor of_unit = gradient * weight;
      const at::Tensor along = (of_unit * unit).mean(-1, /*keepdim=*/true);
      found[0] = of_unit.addcmul_(unit, along, /*value=*/-1).mul_(root).to(kept[0].scalar_type());
    }
    if (context->needs_input_grad(1))
      found[1] = (gradient * unit).flatten(0, -2).sum(0).to(kept[1].scalar_type());
    return found;
  }
};

}  // namespace

at::Tensor root_norm(const at::Tensor& input, const at::Tensor& weight, double epsilon,
                     bool plus_one) {
  return input.is_cpu() ? RootNorm::apply(input, weight, epsilon, plus_one)
                        : normed(input, weight, epsilon, plus_one);
}

}  // namespace pipewright::engine
