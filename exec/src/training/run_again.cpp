#include "pipewright/exec/training/run_again.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace pipewright::exec {
namespace {

using Work = std::function<at::Tensor(const Tensors&)>;

struct Kept final : torch::CustomClassHolder {
  explicit Kept(Work w) : work(std::move(w)) {}
  Work work;
};

struct RunAgain : torch::autograd::Function<RunAgain> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const Work& work,
                            const at::TensorList& inputs) {
    context->saved_data["work"] = c10::IValue::make_capsule(c10::make_intrusive<Kept>(work));
    context->save_for_backward(inputs.vec());
    return work(inputs.vec());
  }

  static Tensors backward(torch::autograd::AutogradContext* context, const Tensors& gradients) {
    const auto kept =
        c10::static_intrusive_pointer_cast<Kept>(context->saved_data["work"].toCapsule());
    Tensors leaves, wanted;
    for (const at::Tensor& input : context->get_saved_variables()) {
      leaves.push_back(input.detach());
      if (input.requires_grad()) {
        leaves.back().requires_grad_();
        wanted.push_back(leaves.back());
      }
    }
    Tensors found;
    {
      const at::AutoGradMode with_graph(true);
      found = torch::autograd::grad({kept->work(leaves)}, wanted, gradients);
    }
    Tensors results(1);  // for `work` there is none
    std::size_t next = 0;
    for (const at::Tensor& leaf : leaves)
      results.push_back(leaf.requires_grad() ? found.at(next++) : at::Tensor());
    return results;
  }
};

}  // namespace

at::Tensor run_again_in_backward(Work work, const Tensors& inputs) {
  return RunAgain::apply(work, at::TensorList(inputs));  // in a vector it sees no tensors
}

}  // namespace pipewright::exec
