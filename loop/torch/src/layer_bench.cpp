#include "pipewright/loop_torch/layer_bench.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "pipewright/exec/models/layer.hpp"
#include "pipewright/exec/rank/core.hpp"
#include "pipewright/exec/stage/split_backward.hpp"

namespace pipewright::loop {
namespace {

/// As costs name it.
std::string dtype_of(at::ScalarType precision) {
  if (precision == at::kFloat)
    return "float32";
  return precision == at::kBFloat16 ? "bfloat16" : "float16";
}

}  // namespace

LayerBench::LayerBench(const Workload& workload, const std::function<bool(int layer)>& wanted)
    : on_device_(workload.device(), account_), device_(workload.device().device) {
  const exec::ChargeTo charge(account_);
  const exec::TrainingSetup& setup = workload.setup();
  for (int l = 0; l < static_cast<int>(setup.layers.size()); ++l)
    add_layer(setup, l, !wanted || wanted(l));
  const at::Tensor target = setup.data->target(0, 0).to(device_);
  subject_.loss = {"loss",
                   [&setup, target](const at::Tensor& output) {
                     return setup.loss({output.to(at::kFloat)}, {target});
                   },
                   {},
                   {},
                   {}};
  subject_.load = [&setup, this] {
    const at::Tensor input = setup.data->input(0, 0).to(device_);
    return at::isFloatingType(input.scalar_type()) ? input.to(setup.precision) : input;
  };
  subject_.dtype = dtype_of(setup.precision);
  subject_.target = {static_cast<std::int64_t>(target.nbytes())};
  subject_.microbatch_size = setup.microbatch_size;
  if (!device_.is_cpu()) {
    subject_.device = exec::gpus().names.at(static_cast<std::size_t>(device_.index()));
    subject_.finish = [this] { on_device_.finish(); };
  }
  subject_.input_gradient = [](const at::Tensor& output, const at::Tensor& gradient,
                               const at::Tensor& input) {
    const auto split = std::make_shared<exec::SplitBackward>();
    const auto gradients = split->input_gradients({output}, {gradient}, {input});
    return profiler::HalfBackward{gradients.front(), [split] { split->weight_gradients(); }};
  };
  subject_.memory = {[this] { return account_.held(); }, [this] { return account_.peak(); },
                     [this] { account_.reset_peak(); }};
}

void LayerBench::add_layer(const exec::TrainingSetup& setup, int layer, bool wanted) {
  profiler::Probe& probe = subject_.layers.emplace_back();
  probe.name = setup.layers[static_cast<std::size_t>(layer)].name;
  if (!wanted)
    return;
  const auto module = exec::build_layer(setup.layers, layer, setup.base_seed);
  if (setup.precision != at::kFloat)
    module->to(setup.precision);
  module->to(device_);
  const auto forward = [module](bool selective) {
    return [module, selective](const at::Tensor& input) {
      return module->forward(input, {.selective_recompute = selective});
    };
  };
  probe.forward = forward(false);
  probe.selective = forward(true);
  probe.parameters = module->parameters();
  auto* const optimizer =
      optimizers_.emplace_back(std::make_unique<exec::Optimizer>(probe.parameters, setup.optimizer))
          .get();
  probe.optimizer_step = [optimizer, &setup] { optimizer->step(setup.optimizer.learning_rate); };
}

profiler::Cores rank_cores(const std::vector<std::unique_ptr<LayerBench>>& benches) {
  std::vector<exec::MemoryAccount*> accounts;
  for (const auto& bench : benches)
    accounts.push_back(&bench->account());
  const auto prepare = [accounts](int core) -> std::shared_ptr<void> {
    at::set_num_threads(1);
    exec::pin_to_core(core, static_cast<int>(accounts.size()));
    return std::make_shared<exec::ChargeTo>(*accounts[static_cast<std::size_t>(core)]);
  };
  return {static_cast<int>(benches.size()), prepare};
}

}  // namespace pipewright::loop
