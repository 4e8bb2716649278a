#include "stage.hpp"

#include <cassert>

namespace pipewright::exec {

using plan::Instruction;

namespace {

/// The backward is over; the input's gradient stays until it is handed on.
void drop_activations(StageBuffers& held) {
  at::Tensor input_gradient = std::move(held.input_gradient);
  held = StageBuffers();
  held.input_gradient = std::move(input_gradient);
}

}  // namespace

Stage::Stage(int first, int last, int slots, int microbatches, const TrainingSetup& setup)
    : first_(first),
      last_(last),
      microbatches_(microbatches),
      setup_(setup),
      slots_(static_cast<std::size_t>(slots)),
      losses_(static_cast<std::size_t>(microbatches), 0.0) {
  std::vector<at::Tensor> parameters;
  for (int i = first; i < last; ++i) {
    layers_.push_back(build_layer(setup.layers, i, setup.base_seed));
    for (const at::Tensor& parameter : layers_.back()->parameters())
      parameters.push_back(parameter);
  }
  optimizer_ = std::make_unique<AdamW>(std::move(parameters), setup.optimizer);
}

void Stage::load(const Instruction& i, int step) {
  if (first_ == 0)
    buffers(i).input = setup_.data->input(step, i.microbatch);
  if (is_last())
    buffers(i).target = setup_.data->target(step, i.microbatch);
}

void Stage::forward(const Instruction& i, int step) {
  StageBuffers& held = buffers(i);
  if (first_ > 0 && at::isFloatingType(held.input.scalar_type()))
    held.input.requires_grad_();

  at::Tensor value = held.input;
  for (const auto& layer : layers_)
    value = layer->forward(value, {step, i.microbatch});
  if (!is_last()) {
    held.output = std::move(value);
    return;
  }
  const at::Tensor loss = setup_.loss(value, held.target);
  losses_[static_cast<std::size_t>(i.microbatch)] = loss.item<double>();
  held.output = loss / microbatches_;
}

void Stage::backward(const Instruction& i) {
  StageBuffers& held = buffers(i);
  // No retained graph: saved tensors are freed as the backward passes them.
  torch::autograd::backward({held.output}, {held.output_gradient});
  held.input_gradient = held.input.grad();
  drop_activations(held);
}

void Stage::input_gradient(const Instruction& i) {
  StageBuffers& held = buffers(i);
  if (!held.input.requires_grad())
    return;
  held.input_gradient = torch::autograd::grad({held.output}, {held.input}, {held.output_gradient},
                                              /*retain_graph=*/true)
                            .front();
}

void Stage::weight_gradient(const Instruction& i) {
  StageBuffers& held = buffers(i);
  const auto& parameters = optimizer_->parameters();
  if (!parameters.empty()) {
    const auto gradients = torch::autograd::grad({held.output}, parameters, {held.output_gradient});
    const at::NoGradGuard no_grad;
    for (std::size_t p = 0; p < parameters.size(); ++p)
      parameters[p].grad().add_(gradients[p]);
  }
  drop_activations(held);
}

at::Tensor Stage::take_input_gradient(const Instruction& i) {
  return std::move(buffers(i).input_gradient);
}

}  // namespace pipewright::exec
