#include "pipewright/exec/training/torch_optimizer.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <utility>

#include "pipewright/plan/error.hpp"

namespace pipewright::exec {
namespace {

namespace optim = torch::optim;
using ParamState = optim::OptimizerParamState;

/// Returns the state of a parameter as its optimizer makes it before or during its first step.
template <class State>
std::unique_ptr<ParamState> adam_state(const at::Tensor& parameter, bool amsgrad) {
  auto state = std::make_unique<State>();
  state->step(0);
  state->exp_avg(at::zeros_like(parameter));
  state->exp_avg_sq(at::zeros_like(parameter));
  if (amsgrad)
    state->max_exp_avg_sq(at::zeros_like(parameter));
  return state;
}

std::unique_ptr<ParamState> rms_state(const at::Tensor& parameter,
                                      const optim::RMSpropOptions& options) {
  auto state = std::make_unique<optim::RMSpropParamState>();
  state->step(0);
  state->square_avg(at::zeros_like(parameter));
  if (options.momentum() > 0)
    state->momentum_buffer(at::zeros_like(parameter));
  if (options.centered())
    state->grad_avg(at::zeros_like(parameter));
  return state;
}

/// Returns SGD's first state, a momentum buffer of zeros. The first step then sets it to the
/// gradient, as LibTorch does, provided that there is no dampening.
std::unique_ptr<ParamState> sgd_state(const at::Tensor& parameter,
                                      const optim::SGDOptions& options) {
  if (options.dampening() != 0)
    throw plan::InputError(
        fmt::format("torch::optim::SGD with a dampening of {} cannot start from a checkpoint, "
                    "because its first step is not dampened. Leave dampening out",
                    options.dampening()));
  if (options.momentum() == 0)
    return nullptr;
  auto state = std::make_unique<optim::SGDParamState>();
  state->momentum_buffer(at::zeros_like(parameter));
  return state;
}

std::unique_ptr<ParamState> first_state(const at::Tensor& parameter,
                                        const optim::OptimizerOptions& options) {
  if (const auto* adam = dynamic_cast<const optim::AdamOptions*>(&options))
    return adam_state<optim::AdamParamState>(parameter, adam->amsgrad());
  if (const auto* adamw = dynamic_cast<const optim::AdamWOptions*>(&options))
    return adam_state<optim::AdamWParamState>(parameter, adamw->amsgrad());
  if (const auto* rms = dynamic_cast<const optim::RMSpropOptions*>(&options))
    return rms_state(parameter, *rms);
  if (const auto* sgd = dynamic_cast<const optim::SGDOptions*>(&options))
    return sgd_state(parameter, *sgd);
  throw plan::InputError(
      "this LibTorch optimizer is not supported (possible: Adagrad, Adam, AdamW, RMSprop, SGD). "
      "Derive it from UserOptimizer");
}

/// Calls `tensor(name, value)` for each tensor of a state, and `count(steps)` for its step count.
template <class State, class OnTensor, class OnCount>
void visit_moments(State& state, const OnTensor& tensor, const OnCount& count) {
  count(state.step());
  tensor("exp_avg", state.exp_avg());
  tensor("exp_avg_sq", state.exp_avg_sq());
  tensor("max_exp_avg_sq", state.max_exp_avg_sq());
}

template <class OnTensor, class OnCount>
void visit(ParamState& state, const OnTensor& tensor, const OnCount& count) {
  if (auto* adam = dynamic_cast<optim::AdamParamState*>(&state)) {
    visit_moments(*adam, tensor, count);
  } else if (auto* adamw = dynamic_cast<optim::AdamWParamState*>(&state)) {
    visit_moments(*adamw, tensor, count);
  } else if (auto* adagrad = dynamic_cast<optim::AdagradParamState*>(&state)) {
    count(adagrad->step());
    tensor("sum", adagrad->sum());
  } else if (auto* rms = dynamic_cast<optim::RMSpropParamState*>(&state)) {
    count(rms->step());
    tensor("square_avg", rms->square_avg());
    tensor("momentum_buffer", rms->momentum_buffer());
    tensor("grad_avg", rms->grad_avg());
  } else if (auto* sgd = dynamic_cast<optim::SGDParamState*>(&state)) {
    tensor("momentum_buffer", sgd->momentum_buffer());
  }
}

class TorchOptimizer final : public UserOptimizer {
 public:
  TorchOptimizer(std::unique_ptr<optim::Optimizer> optimizer,
                 const std::vector<ParameterGroup>& groups)
      : optimizer_(std::move(optimizer)) {
    auto& theirs = optimizer_->param_groups();
    if (theirs.size() != groups.size())
      throw plan::InputError(fmt::format(
          "the optimizer has {} parameter groups, but the stage has {}. Make one for each",
          theirs.size(), groups.size()));
    for (std::size_t g = 0; g < groups.size(); ++g) {
      rates_.push_back(groups[g].rule.rate);
      for (const at::Tensor& parameter : theirs[g].params())
        keep(parameter, theirs[g].options());
    }
  }

  void step(double learning_rate) override {
    auto& groups = optimizer_->param_groups();
    for (std::size_t g = 0; g < groups.size(); ++g)
      groups[g].options().set_lr(learning_rate * rates_[g]);
    optimizer_->step();
    for (const Kept& kept : kept_)
      visit(
          *kept.state, [](const char*, const at::Tensor&) {},
          [&](std::int64_t steps) { kept.steps.fill_(steps); });
  }

  std::vector<UserOptimizerState> states() override {
    std::vector<UserOptimizerState> all;
    for (const Kept& kept : kept_)
      visit(
          *kept.state,
          [&](const char* name, const at::Tensor& value) {
            if (value.defined())
              all.push_back({kept.parameter, name, value});
          },
          [&](std::int64_t) {
            all.push_back({kept.parameter, "step", kept.steps});
          });
    return all;
  }

  void states_were_set() override {
    for (const Kept& kept : kept_)
      visit(
          *kept.state, [](const char*, const at::Tensor&) {},
          [&](std::int64_t& steps) { steps = kept.steps.item<std::int64_t>(); });
  }

 private:
  /// A parameter's state. LibTorch counts steps in a number, a checkpoint in a tensor.
  struct Kept {
    at::Tensor parameter;
    ParamState* state;
    at::Tensor steps;
  };

  void keep(const at::Tensor& parameter, const optim::OptimizerOptions& options) {
    auto& state = optimizer_->state()[parameter.unsafeGetTensorImpl()];
    if (state == nullptr)
      state = first_state(parameter, options);
    if (state == nullptr)
      optimizer_->state().erase(parameter.unsafeGetTensorImpl());
    else
      kept_.push_back({parameter, state.get(), at::zeros({}, at::kLong)});
  }

  std::unique_ptr<optim::Optimizer> optimizer_;
  std::vector<double> rates_;  // by group
  std::vector<Kept> kept_;
};

}  // namespace

Tensors ParameterGroup::values() const {
  Tensors values;
  for (const OptimizerParameter& parameter : parameters)
    values.push_back(parameter.value);
  return values;
}

std::unique_ptr<UserOptimizer> wrapped(std::unique_ptr<optim::Optimizer> optimizer,
                                       const std::vector<ParameterGroup>& groups) {
  return std::make_unique<TorchOptimizer>(std::move(optimizer), groups);
}

}  // namespace pipewright::exec
