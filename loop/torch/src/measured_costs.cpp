#include "pipewright/loop_torch/measured_costs.hpp"

#include <algorithm>
#include <thread>

#include "pipewright/loop/stopped.hpp"
#include "pipewright/loop_torch/layer_bench.hpp"

namespace pipewright::loop {
namespace {

/// How many ranks compute at once on one of the scenario's nodes, if this machine is one of them.
int busy_cores(const plan::Scenario& scenario) {
  const int ranks = scenario.pipeline.ranks * scenario.pipeline.replicas;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return std::min({ranks, scenario.cluster.devices_per_node, cores});
}

}  // namespace

plan::LayerCosts measure_costs(const plan::Scenario& scenario, const Workload& workload,
                               plan::Seconds over, const std::atomic<bool>& stop,
                               const std::function<void(const profiler::Progress&)>& progress) {
  std::vector<std::unique_ptr<LayerBench>> benches;
  std::vector<const profiler::Subject*> subjects;
  const int count = workload.device().device.is_cpu() ? busy_cores(scenario) : 1;
  for (int core = 0; core < count; ++core)
    subjects.push_back(&benches.emplace_back(std::make_unique<LayerBench>(workload))->subject());
  profiler::Cores cores = rank_cores(benches);
  plan::LayerCosts costs;
  // The memory figures are those of the first bench, so all is measured on its thread.
  const exec::ChargeTo charge(benches.front()->account());
  costs = profiler::profile(subjects, cores, scenario.profile, progress, &stop, over);
  if (stop)
    throw Stopped{};
  return costs;
}

}  // namespace pipewright::loop
