#include "pipewright/exec/training/run_again.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace pipewright::exec {
namespace {

using Work = std::function<Tensors(const Tensors&)>;

struct RecomputedSegment final : torch::CustomClassHolder {
  explicit RecomputedSegment(Work w) : work(std::move(w)) {}
  Work work;
};

/// Autograd function that recomputes `work` in its backward. The first `inputs` tensors of `all`
/// are the work's inputs, the others its parameters.
struct RunAgain : torch::autograd::Function<RunAgain> {
  static Tensors forward(torch::autograd::AutogradContext* context, const Work& work,
                         std::int64_t inputs, const at::TensorList& all) {
    context->saved_data["work"] =
        c10::IValue::make_capsule(c10::make_intrusive<RecomputedSegment>(work));
    context->saved_data["inputs"] = inputs;
    context->save_for_backward(all.vec());
    return work(all.slice(0, static_cast<std::size_t>(inputs)).vec());
  }

  static Tensors backward(torch::autograd::AutogradContext* context, const Tensors& gradients) {
    const auto kept = c10::static_intrusive_pointer_cast<RecomputedSegment>(
        context->saved_data["work"].toCapsule());
    const auto inputs = static_cast<std::size_t>(context->saved_data["inputs"].toInt());
    const Tensors all = context->get_saved_variables();
    Tensors leaves, wanted;
    std::vector<bool> is_wanted;
    for (std::size_t t = 0; t < all.size(); ++t) {
      is_wanted.push_back(all[t].defined() && all[t].requires_grad());
      if (t < inputs) {
        leaves.push_back(all[t].defined() ? all[t].detach() : all[t]);
        if (is_wanted.back())
          leaves.back().requires_grad_();
      }
      if (is_wanted.back())
        wanted.push_back(t < inputs ? leaves.back() : all[t]);
    }
    const Tensors found = found_of(kept->work, leaves, gradients, wanted);
    Tensors results(2);  // the work and its input count have no gradient
    std::size_t next = 0;
    for (const bool is : is_wanted)
      results.push_back(is ? found.at(next++) : at::Tensor());
    return results;
  }

 private:
  static Tensors found_of(const Work& work, const Tensors& leaves, const Tensors& gradients,
                          const Tensors& wanted) {
    const at::AutoGradMode with_graph(true);
    const Tensors outputs = work(leaves);
    Tensors roots, root_gradients;
    for (std::size_t t = 0; t < outputs.size(); ++t)
      if (outputs[t].defined() && outputs[t].requires_grad() && gradients[t].defined()) {
        roots.push_back(outputs[t]);
        root_gradients.push_back(gradients[t]);
      }
    return torch::autograd::grad(roots, wanted, root_gradients, /*retain_graph=*/{},
                                 /*create_graph=*/false, /*allow_unused=*/true);
  }
};

}  // namespace

Tensors recompute_in_backward(Work work, const Tensors& inputs, const Tensors& parameters) {
  Tensors all = inputs;
  all.insert(all.end(), parameters.begin(), parameters.end());
  return RunAgain::apply(work, static_cast<std::int64_t>(inputs.size()),
                         at::TensorList(all));  // autograd sees no tensors in a std::vector
}

at::Tensor recompute_in_backward(std::function<at::Tensor(const Tensors&)> work,
                                 const Tensors& inputs) {
  const Work one = [work = std::move(work)](const Tensors& values) {
    return Tensors{work(values)};
  };
  return recompute_in_backward(one, inputs, {}).front();
}

}  // namespace pipewright::exec
