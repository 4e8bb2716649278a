#include "pipewright/exec/serial.hpp"

namespace pipewright::exec {

SerialTrainer::SerialTrainer(const TrainingSetup& setup, int microbatches)
    : setup_(setup), microbatches_(microbatches) {
  std::vector<at::Tensor> parameters;
  for (int i = 0; i < static_cast<int>(setup_.layers.size()); ++i) {
    layers_.push_back(build_layer(setup_.layers, i, setup_.base_seed));
    for (const at::Tensor& parameter : layers_.back()->parameters())
      parameters.push_back(parameter);
  }
  optimizer_ = std::make_unique<AdamW>(std::move(parameters), setup_.optimizer);
}

StepResult SerialTrainer::step(int step) {
  // As on a rank: with more threads the kernels would add up in another order.
  at::set_num_threads(1);
  const auto begin = std::chrono::steady_clock::now();
  double sum = 0;
  for (int m = 0; m < microbatches_; ++m) {
    at::Tensor value = setup_.data->input(step, m);
    for (const auto& layer : layers_)
      value = layer->forward(value, {step, m});
    const at::Tensor loss = setup_.loss(value, setup_.data->target(step, m));
    sum += loss.item<double>();
    (loss / microbatches_).backward();
  }
  optimizer_->step();
  const std::chrono::duration<double> duration = std::chrono::steady_clock::now() - begin;
  return {sum / microbatches_, {duration.count()}};
}

}  // namespace pipewright::exec
