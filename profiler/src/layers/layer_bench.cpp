#include "pipewright/profiler/layers/layer_bench.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "pipewright/exec/cpu/core.hpp"

namespace pipewright::profiler {

LayerBench::LayerBench(const exec::TrainingSetup& setup, const exec::RankDevice& where,
                       const ShardSeat& seat)
    : setup_(setup),
      seat_(seat),
      shards_(seat.count > 1 ? std::make_unique<PlayedShards>(seat) : nullptr),
      device_(where.device) {
  if (!device_.is_cpu())
    on_gpu_.emplace(where, account_);
}

std::string LayerBench::name(int layer) const {
  return layer == loss() ? "loss" : setup_.layers[static_cast<std::size_t>(layer)].name;
}

std::string LayerBench::device() const {
  if (device_.is_cpu())
    return "";
  return exec::gpus().names.at(static_cast<std::size_t>(device_.index()));
}

exec::TensorParallelPlace LayerBench::place() const {
  return {
      .index = seat_.index, .count = seat_.count, .groups = seat_.groups, .group = shards_.get()};
}

std::unique_ptr<exec::Stage> LayerBench::build(exec::StageSpec spec) const {
  const exec::ChargeTo charge(account_);
  spec.device = device_;
  spec.place = place();
  return std::make_unique<exec::Stage>(std::move(spec), setup_);
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
