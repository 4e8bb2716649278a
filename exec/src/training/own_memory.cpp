#include "pipewright/exec/training/own_memory.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace pipewright::exec {
namespace {

struct WithOwnGradient : torch::autograd::Function<WithOwnGradient> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& value) {
    return value;
  }
  static Tensors backward(torch::autograd::AutogradContext*, const Tensors& gradients) {
    const at::Tensor& gradient = gradients.front();
    return {gradient.is_contiguous() && gradient.storage_offset() == 0
                ? gradient
                : gradient.clone(at::MemoryFormat::Contiguous)};
  }
};

}  // namespace

at::Tensor as_one_of_its_own(const at::Tensor& part) {
  constexpr std::uintptr_t alignment = 64;  // LibTorch's tensors begin at multiples of this
  const auto address = reinterpret_cast<std::uintptr_t>(part.const_data_ptr());
  return part.is_contiguous() && address % alignment == 0
             ? part
             : part.clone(at::MemoryFormat::Contiguous);
}

at::Tensor with_own_gradient(const at::Tensor& value) { return WithOwnGradient::apply(value); }

}  // namespace pipewright::exec
