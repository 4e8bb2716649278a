#include "pipewright/loop_torch/measured_costs.hpp"

#include <algorithm>
#include <thread>

#include "pipewright/loop/stopped.hpp"

namespace pipewright::loop {
namespace {

using Report = std::function<void(const profiler::Progress&)>;

/// How many ranks compute at once on one of the scenario's nodes, if this machine is one of them.
int busy_cores(const plan::Scenario& scenario) {
  const int ranks = scenario.pipeline.ranks * scenario.pipeline.replicas;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return std::min({ranks, scenario.cluster.devices_per_node, cores});
}

plan::LayerCosts costs_on_cores(const plan::Scenario& scenario, const Workload& workload,
                                plan::Seconds over, const std::atomic<bool>& stop,
                                const Report& report) {
  std::vector<std::unique_ptr<profiler::LayerBench>> benches;
  for (int core = 0; core < busy_cores(scenario); ++core)
    benches.push_back(std::make_unique<profiler::LayerBench>(workload.setup()));
  profiler::Cores cores = profiler::rank_cores(benches);
  return profiler::profile(benches, cores, scenario.profile, report, &stop, over);
}

/// On this thread, which has the stream of the bench.
plan::LayerCosts costs_on_gpu(const plan::Scenario& scenario, const Workload& workload,
                              plan::Seconds over, const std::atomic<bool>& stop,
                              const Report& report) {
  profiler::LayerBench bench(workload.setup(), workload.device());
  return profiler::profile(bench, scenario.profile, report, &stop, over);
}

}  // namespace

plan::LayerCosts measure_costs(const plan::Scenario& scenario, const Workload& workload,
                               plan::Seconds over, const std::atomic<bool>& stop,
                               const std::function<void(const profiler::Progress&)>& progress) {
  const auto costs = workload.device().device.is_cpu()
                         ? costs_on_cores(scenario, workload, over, stop, progress)
                         : costs_on_gpu(scenario, workload, over, stop, progress);
  if (stop)
    throw Stopped{};
  return costs;
}

}  // namespace pipewright::loop
