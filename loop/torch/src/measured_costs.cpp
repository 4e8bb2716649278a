#include "pipewright/loop_torch/measured_costs.hpp"

#include <algorithm>
#include <thread>

#include "pipewright/loop/stopped.hpp"

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
  std::vector<std::unique_ptr<profiler::LayerBench>> benches;
  const int count = workload.device().device.is_cpu() ? busy_cores(scenario) : 1;
  for (int core = 0; core < count; ++core)
    benches.push_back(std::make_unique<profiler::LayerBench>(workload.setup(), workload.device()));
  profiler::Cores cores = profiler::rank_cores(benches);
  plan::LayerCosts costs =
      profiler::profile(benches, cores, scenario.profile, progress, &stop, over);
  if (stop)
    throw Stopped{};
  return costs;
}

}  // namespace pipewright::loop
