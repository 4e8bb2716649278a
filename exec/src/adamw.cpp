#include "pipewright/exec/adamw.hpp"

namespace pipewright::exec {

AdamW::AdamW(std::vector<at::Tensor> parameters, const Options& options)
    : options_(options), parameters_(std::move(parameters)) {
  for (at::Tensor& parameter : parameters_) {
    if (!parameter.grad().defined())
      parameter.mutable_grad() = at::zeros_like(parameter);
    gradients_.push_back(parameter.grad());
    first_moments_.push_back(at::zeros_like(parameter));
    second_moments_.push_back(at::zeros_like(parameter));
    step_counts_.push_back(at::zeros({}, at::kFloat));
  }
}

void AdamW::step() {
  if (parameters_.empty())
    return;
  const at::NoGradGuard no_grad;
  for (const at::Tensor& count : step_counts_)
    count.add_(1);
  at::_fused_adamw_(parameters_, gradients_, first_moments_, second_moments_, {}, step_counts_,
                    options_.learning_rate, options_.beta1, options_.beta2, options_.weight_decay,
                    options_.epsilon, /*amsgrad=*/false, /*maximize=*/false);
  for (const at::Tensor& gradient : gradients_)
    gradient.zero_();
}

}  // namespace pipewright::exec
