#include "pipewright/profiler/profile.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "layer_memory.hpp"
#include "layer_sums.hpp"
#include "pipewright/exec/checkpoint/dtype.hpp"
#include "pipewright/exec/models/routed_rows.hpp"
#include "pipewright/plan/costs/expert_loads.hpp"
#include "pipewright/plan/statistics.hpp"
#include "pipewright/profiler/rehearsal.hpp"
#include "selective.hpp"
#include "whole_model.hpp"

namespace pipewright::profiler {
namespace {

using Clock = std::chrono::steady_clock;

class Profile {
 public:
  Profile(const std::vector<LayerBench*>& benches, Cores* cores)
      : bench_(*benches.front()), cores_(cores), contended_(benches.size()) {
    for (const LayerBench* bench : benches)
      rehearsals_.push_back(whole_model(*bench));
  }

  void pass(bool counts) {
    if (counts && whole_.empty())
      begin_ = Clock::now();
    const auto play_first = [&] { rehearsals_.front().play(counts ? &alone_ : nullptr); };
    if (cores_ == nullptr)
      play_first();
    else
      cores_->alone(0, play_first);
    if (counts)
      note(rehearsals_.front());
    if (rehearsals_.size() == 1)
      return;
    cores_->together([&](int core) {
      const auto at = static_cast<std::size_t>(core);
      rehearsals_[at].play(counts ? &contended_[at] : nullptr);
    });
  }

  double whole_spread() const { return plan::spread(whole_); }
  int passes() const { return static_cast<int>(whole_.size()); }
  plan::Seconds measured_over() const {
    return {whole_.empty() ? 0 : std::chrono::duration<double>(Clock::now() - begin_).count()};
  }

  plan::LayerCosts costs() {
    plan::LayerCosts costs;
    costs.device = bench_.device().empty() ? cpu_name() : bench_.device();
    costs.dtype = exec::word_of(bench_.setup().precision);
    costs.software = std::string("LibTorch ") + TORCH_VERSION;
    costs.microbatch_size = bench_.setup().microbatch_size;
    costs.tensor = bench_.shard_count();
    costs.load = {plan::typical_mean(load_)};
    costs.load_target = {plan::typical_mean(load_target_)};
    costs.busy_cores = static_cast<int>(rehearsals_.size());
    costs.drift = plan::drift(whole_);
    costs.measured_over = measured_over();
    exec::Stage& stage = rehearsals_.front().stage(0);
    const plan::Instruction load{plan::InstructionKind::Load, 0, 0, 0};
    stage.begin({.data = bench_.setup().data}, /*slots=*/1);
    stage.load(load);
    at::Tensor value = stage.inputs(load).at(0);
    const exec::Tensors targets = stage.targets(load);
    stage.end();
    costs.input = {static_cast<std::int64_t>(value.nbytes())};
    costs.target = {static_cast<std::int64_t>(targets.at(0).nbytes())};
    const auto loads = loads_of_experts(stage);
    for (int layer = 0; layer <= bench_.loss(); ++layer) {
      const Trial trial{bench_, stage, layer, value, targets};
      plan::LayerCost& cost = layer < bench_.loss() ? costs.layers.emplace_back() : costs.loss;
      cost = cost_of(trial);
      cost.expert_loads = loads[static_cast<std::size_t>(layer)];
      const at::NoGradGuard no_grad;
      value = trial.forward(value);
    }
    return costs;
  }

 private:
  /// By layer: what the router makes of the data of several steps.
  std::vector<std::vector<plan::ExpertLoad>> loads_of_experts(exec::Stage& stage) const {
    constexpr int microbatches = 16;
    const at::NoGradGuard no_grad;
    std::vector<std::vector<std::vector<std::int64_t>>> rows(
        static_cast<std::size_t>(bench_.loss()) + 1);
    const auto& layers = bench_.setup().layers;
    const bool has_experts = std::any_of(layers.begin(), layers.end(),
                                         [](const exec::LayerSpec& l) { return l.has_experts; });
    for (int step = 0; step < microbatches && has_experts; ++step) {
      const plan::Instruction load{plan::InstructionKind::Load, 0, 0, 0};
      stage.begin({.data = bench_.setup().data, .step = step}, /*slots=*/1);
      stage.load(load);
      at::Tensor value = stage.inputs(load).at(0);
      stage.end();
      for (int layer = 0; layer < bench_.loss(); ++layer) {
        const exec::RoutedRows routed;
        value = stage.run_layer(layer, {value}, {}, {}).at(0);
        if (!routed.by_expert().empty())
          rows[static_cast<std::size_t>(layer)].push_back(routed.by_expert());
      }
    }
    std::vector<std::vector<plan::ExpertLoad>> loads;
    for (const auto& of_layer : rows)
      loads.push_back(plan::expert_loads(of_layer));
    return loads;
  }

  /// What the script of a pass took: its first load, and forward and backward in one go.
  void note(const Rehearsal& whole) {
    const std::vector<double>& seconds = whole.seconds();
    load_target_.push_back(whole.target_seconds().front());
    load_.push_back(seconds[0] - load_target_.back());
    whole_.push_back(seconds[1] + seconds[2]);
  }

  plan::LayerCost cost_of(const Trial& trial) const {
    plan::LayerCost cost =
        times_of_layer(static_cast<std::size_t>(trial.layer), !trial.parameters().empty());
    cost.name = bench_.name(trial.layer);
    measure_memory(trial, cost);
    measure_selective(trial, cost);
    cost.tensor_sums = sums_of_shards(trial);
    return cost;
  }

  plan::LayerCost times_of_layer(std::size_t l, bool has_parameters) const {
    plan::LayerCost cost;
    if (alone_.empty())  // stopped before the first pass
      return cost;
    static_cast<plan::LayerTimes&>(cost) = typical_times(alone_[l], has_parameters);
    std::vector<double> whole = alone_[l].forward;  // two per pass, and one backward
    std::vector<double> sums;
    for (std::size_t pass = 0; pass < alone_[l].backward.size(); ++pass)
      sums.push_back(whole[2 * pass] + alone_[l].backward[pass]);
    cost.spread = plan::spread(sums);
    if (rehearsals_.size() == 1)
      return cost;
    LayerSamples all;
    for (const auto& of_core : contended_)
      all.append(of_core[l]);
    cost.contended = typical_times(all, has_parameters);
    return cost;
  }

  LayerBench& bench_;
  Cores* cores_;
  std::vector<Rehearsal> rehearsals_;                 // by core
  std::vector<LayerSamples> alone_;                   // by layer, the loss last
  std::vector<std::vector<LayerSamples>> contended_;  // by core and layer
  std::vector<double> load_, load_target_;
  std::vector<double> whole_;  // forward and backward of all layers alone, one per pass
  Clock::time_point begin_;
};

plan::LayerCosts run(const std::vector<LayerBench*>& benches, Cores* cores,
                     const plan::ProfileSettings& settings,
                     const std::function<void(const Progress&)>& report,
                     const std::atomic<bool>* stop, plan::Seconds over) {
  const exec::ChargeTo charge(benches.front()->account());
  Profile profile(benches, cores);
  const auto stopped = [&] { return stop != nullptr && stop->load(); };
  for (int i = 0; i < settings.warm_up && !stopped(); ++i)
    profile.pass(/*counts=*/false);
  while (!stopped()) {
    profile.pass(/*counts=*/true);
    const Progress progress{profile.passes(), profile.whole_spread(), profile.measured_over()};
    if (report)
      report(progress);
    const bool enough =
        progress.passes >= settings.most_repeats ||
        (progress.passes >= settings.least_repeats && progress.spread <= settings.spread);
    if (enough && progress.passed >= over)
      break;
  }
  return profile.costs();
}

}  // namespace

plan::LayerCosts profile(LayerBench& bench, const plan::ProfileSettings& settings,
                         const std::function<void(const Progress&)>& report,
                         const std::atomic<bool>* stop, plan::Seconds over) {
  return run({&bench}, nullptr, settings, report, stop, over);
}

plan::LayerCosts profile(const std::vector<std::unique_ptr<LayerBench>>& benches, Cores& cores,
                         const plan::ProfileSettings& settings,
                         const std::function<void(const Progress&)>& report,
                         const std::atomic<bool>* stop, plan::Seconds over) {
  std::vector<LayerBench*> each;
  for (const auto& bench : benches)
    each.push_back(bench.get());
  return run(each, &cores, settings, report, stop, over);
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos)
      return line.substr(colon + 2);
  }
  return "CPU";
}

}  // namespace pipewright::profiler
