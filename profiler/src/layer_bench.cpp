#include "pipewright/profiler/layer_bench.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "pipewright/exec/cpu/core.hpp"
#include "pipewright/exec/training/layer.hpp"

namespace pipewright::profiler {

LayerBench::LayerBench(const exec::TrainingSetup& setup, const exec::RankDevice& where,
                       const std::function<bool(int layer)>& wanted)
    : setup_(setup), device_(where.device) {
  if (!device_.is_cpu())
    on_gpu_.emplace(where, account_);
  const exec::ChargeTo charge(account_);
  for (int layer = 0; layer < static_cast<int>(setup.layers.size()); ++layer)
    layers_.push_back(!wanted || wanted(layer) ? build(layer) : Built{});
  target_ = load_target();
}

LayerBench::Built LayerBench::build(int layer) const {
  Built built{exec::build_layer(setup_, layer, device_), nullptr};
  built.optimizer = std::make_unique<exec::Optimizer>(built.layer->parameters(), setup_.optimizer);
  return built;
}

std::string LayerBench::name(std::size_t layer) const {
  return layer == loss() ? "loss" : setup_.layers[layer].name;
}

std::string LayerBench::device() const {
  if (device_.is_cpu())
    return "";
  return exec::gpus().names.at(static_cast<std::size_t>(device_.index()));
}

at::Tensor LayerBench::load() const {
  const at::Tensor input = setup_.data->input(0, 0).to(device_);
  return at::isFloatingType(input.scalar_type()) ? input.to(setup_.precision) : input;
}

at::Tensor LayerBench::load_target() const { return setup_.data->target(0, 0).to(device_); }

at::Tensor LayerBench::forward(std::size_t layer, const at::Tensor& input, bool selective) const {
  if (layer == loss())
    return setup_.loss({input.to(at::kFloat)}, {target_});
  return exec::run_layer(setup_.layers[layer], *layers_[layer].layer, static_cast<int>(layer),
                         setup_.base_seed, {input}, {.selective_recompute = selective})
      .at(0);
}

exec::Tensors LayerBench::parameters(std::size_t layer) const {
  return layer == loss() ? exec::Tensors{} : layers_[layer].optimizer->parameters();
}

void LayerBench::optimizer_step(std::size_t layer, bool leaves_weights) const {
  if (leaves_weights)
    layers_[layer].optimizer->leave_weights();
  layers_[layer].optimizer->step(setup_.optimizer.learning_rate);
}

void LayerBench::finish() const {
  if (on_gpu_)
    on_gpu_->finish();
}

Cores rank_cores(const std::vector<std::unique_ptr<LayerBench>>& benches) {
  return rank_cores(benches, 0, static_cast<int>(benches.size()));
}

Cores rank_cores(const std::vector<std::unique_ptr<LayerBench>>& benches, int first,
                 int job_ranks) {
  std::vector<exec::MemoryAccount*> accounts;
  for (const auto& bench : benches)
    accounts.push_back(&bench->account());
  const auto prepare = [=](int core) -> std::shared_ptr<void> {
    at::set_num_threads(1);
    exec::pin_to_core(first + core, job_ranks);
    return std::make_shared<exec::ChargeTo>(*accounts[static_cast<std::size_t>(core)]);
  };
  return {static_cast<int>(benches.size()), prepare};
}

}  // namespace pipewright::profiler
