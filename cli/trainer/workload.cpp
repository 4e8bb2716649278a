#include "workload.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "console.hpp"
#include "interrupt.hpp"
#include "pipewright/exec/layer.hpp"
#include "pipewright/exec/split_backward.hpp"
#include "pipewright/plan/json_document.hpp"
#include "pipewright/profiler/profile.hpp"

namespace pipewright::cli {

using plan::Scenario;

Workload::Workload(const Scenario& scenario, std::vector<exec::RankDevice> devices)
    : devices_(std::move(devices)) {
  const auto& training = scenario.training;
  const exec::BatchShape batch{
      plan::microbatch_count(plan::request_of(scenario.pipeline)) * scenario.pipeline.replicas,
      training.microbatch_size, training.seed};
  units_per_step_ = static_cast<double>(batch.microbatches) * batch.microbatch_size;
  if (const auto* gpt = std::get_if<plan::GptShape>(&scenario.model)) {
    data_ = exec::open_text(scenario.data.path, gpt->sequence, batch);
    setup_.layers = exec::gpt_layers(*gpt);
    units_per_step_ *= gpt->sequence;
    unit_ = "tokens";
  } else {
    const auto& alexnet = std::get<plan::AlexNetShape>(scenario.model);
    data_ = exec::open_cifar10(scenario.data.path, alexnet.image_size, batch);
    setup_.layers = exec::alexnet_layers(alexnet, training.seed);
    unit_ = "images";
  }
  setup_.loss = exec::cross_entropy;
  setup_.data = data_.get();
  setup_.optimizer = {.kind = training.optimizer,
                      .learning_rate = training.learning_rate,
                      .weight_decay = training.weight_decay,
                      .warm_up_steps = training.warm_up_steps,
                      .decay = training.decay,
                      .decay_steps = training.steps - training.warm_up_steps};
  setup_.base_seed = training.seed;
  setup_.microbatch_size = training.microbatch_size;
  if (training.precision == plan::Precision::Mixed)
    setup_.precision = at::kBFloat16;
  setup_.recompute_interval = training.recompute == plan::RecomputeMode::Full ? 1 : 0;
  setup_.clip_norm = training.clip_norm;
  setup_.gradient_groups = training.gradient_groups;
  setup_.cpu_branch = training.cpu_branch;
}

exec::RankDevice Workload::device() const {
  for (const exec::RankDevice& device : devices_)
    if (!device.device.is_cpu())
      return device;
  return {};
}

namespace {

/// The scenario's layers as the profiler wants them, with optimizers of their own: what is measured
/// trains too, so it must not be the model that is trained later.
struct Bench {
  explicit Bench(const exec::RankDevice& device) : on_device(device, account) {}
  exec::MemoryAccount account;
  exec::OnDevice on_device;
  std::vector<std::unique_ptr<exec::Optimizer>> optimizers;
  profiler::Subject subject;
};

void fill(Bench& bench, const Scenario& scenario, const exec::TrainingSetup& setup,
          at::Device device) {
  for (int l = 0; l < static_cast<int>(setup.layers.size()); ++l) {
    auto layer = exec::build_layer(setup.layers, l, setup.base_seed);
    layer->to(device);
    auto* const optimizer =
        bench.optimizers
            .emplace_back(std::make_unique<exec::Optimizer>(layer->parameters(), setup.optimizer))
            .get();
    bench.subject.layers.push_back(
        {setup.layers[static_cast<std::size_t>(l)].name,
         [layer](const at::Tensor& input) { return layer->forward(input, {}); },
         layer->parameters(),
         [optimizer, &setup] { optimizer->step(setup.optimizer.learning_rate); }});
  }
  const at::Tensor target = setup.data->target(0, 0).to(device);
  bench.subject.loss = {
      "loss",
      [&setup, target](const at::Tensor& output) { return setup.loss({output}, {target}); },
      {},
      {}};
  bench.subject.load = [&setup, device] { return setup.data->input(0, 0).to(device); };
  bench.subject.target = {static_cast<std::int64_t>(target.nbytes())};
  bench.subject.microbatch_size = scenario.training.microbatch_size;
  if (!device.is_cpu()) {
    bench.subject.device = exec::gpus().names.at(static_cast<std::size_t>(device.index()));
    bench.subject.finish = [&bench] { bench.on_device.finish(); };
  }
  bench.subject.input_gradient = [](const at::Tensor& output, const at::Tensor& gradient,
                                    const at::Tensor& input) {
    const auto split = std::make_shared<exec::SplitBackward>();
    split->input_gradients({output}, {gradient}, {input});
    return std::static_pointer_cast<void>(split);
  };
  auto* const account = &bench.account;
  bench.subject.memory = {[account] { return account->held(); },
                          [account] { return account->peak(); },
                          [account] { account->reset_peak(); }};
}

}  // namespace

plan::LayerCosts measure_costs(const Scenario& scenario, const Workload& workload) {
  at::set_num_threads(1);
  Bench bench(workload.device());
  const exec::ChargeTo charge(bench.account);
  fill(bench, scenario, workload.setup(), workload.device().device);
  ProgressLine line;
  auto costs = profiler::profile(
      bench.subject, scenario.profile,
      [&](const profiler::Progress& progress) {
        line.show(fmt::format("profiling: pass {} of at most {}, spread {:.1f} % (wanted {:.1f} %)",
                              progress.passes, scenario.profile.most_repeats, 100 * progress.spread,
                              100 * scenario.profile.spread));
      },
      &interrupted());
  if (interrupted())
    throw Stopped{};
  return costs;
}

plan::LayerCosts costs_for(const plan::Scenario& scenario, const Workload& workload,
                           const std::string& file) {
  if (!file.empty())
    return plan::layer_costs_from_json(plan::JsonDocument::read(file));
  say(fmt::format("profiling {} layers on this machine's {} …", workload.setup().layers.size(),
                  workload.device().device.is_cpu() ? "CPU" : "GPU"));
  auto costs = measure_costs(scenario, workload);
  double worst = 0;
  for (const plan::LayerCost& layer : costs.layers)
    worst = std::max(worst, layer.spread);
  say(fmt::format("measured on {}; the largest spread of a layer is {:.1f} %", costs.device,
                  100 * worst));
  return costs;
}

}  // namespace pipewright::cli
