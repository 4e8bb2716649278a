#include "pipewright/loop_torch/measured_costs.hpp"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "pipewright/loop/stopped.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::loop {
namespace {

using Report = std::function<void(const profiler::Progress&)>;

/// How many ranks compute at once on one of the scenario's nodes, if this machine is one of them.
int busy_cores(const plan::Scenario& scenario) {
  const int ranks = plan::ranks_of_job(scenario.pipeline);
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return std::min({ranks, scenario.cluster.devices_per_node, cores});
}

/// The first shard, each in one group.
profiler::ShardSeat seat_of(const plan::Scenario& scenario) {
  return {.index = 0,
          .count = scenario.pipeline.tensor,
          .groups = scenario.pipeline.tensor,
          .copies = scenario.pipeline.hand_over == plan::HandOver::Copy};
}

plan::LayerCosts costs_on_cores(const plan::Scenario& scenario, const Workload& workload,
                                plan::Seconds over, const std::atomic<bool>& stop,
                                const Report& report) {
  std::vector<std::unique_ptr<profiler::LayerBench>> benches;
  for (int core = 0; core < busy_cores(scenario); ++core)
    benches.push_back(std::make_unique<profiler::LayerBench>(workload.setup(), exec::RankDevice{},
                                                             seat_of(scenario)));
  profiler::Cores cores = profiler::rank_cores(benches);
  return profiler::profile(benches, cores, scenario.profile, report, &stop, over);
}

constexpr int inspected_passes = 12;

/// One that is made for it: what is measured trains.
profiler::Inspection inspect_on_cpu(const plan::Scenario& scenario, const Workload& workload,
                                    const std::atomic<bool>& stop) {
  const profiler::LayerBench bench(workload.setup(), exec::RankDevice{}, seat_of(scenario));
  const auto source = profiler::operator_source();
  return profiler::inspect(bench, *source, inspected_passes, &stop);
}

/// On this thread, which has the stream of the bench.
MeasuredLayers on_gpu(const plan::Scenario& scenario, const Workload& workload, plan::Seconds over,
                      const std::atomic<bool>& stop, const Report& report) {
  profiler::LayerBench bench(workload.setup(), workload.device(), seat_of(scenario));
  MeasuredLayers measured{profiler::profile(bench, scenario.profile, report, &stop, over), {}};
  const char* const config = std::getenv("CUBLAS_WORKSPACE_CONFIG");  // set where there are GPUs
  measured.costs.workspaces =
      exec::product_workspaces(workload.device(), config == nullptr ? "" : config);
  std::unique_ptr<profiler::ActivitySource> source;
  try {
    source = profiler::cupti_source();
  } catch (const plan::InputError& refused) {
    measured.why_host_clock = refused.what();
    return measured;
  }
  measured.inspection =
      profiler::inspect(bench, *source, inspected_passes, &stop, scenario.training.cuda_graphs);
  measured.costs = profiler::with_device_times(std::move(measured.costs), *measured.inspection);
  return measured;
}

}  // namespace

MeasuredLayers measure_layers(const plan::Scenario& scenario, const Workload& workload,
                              plan::Seconds over, const std::atomic<bool>& stop,
                              const std::function<void(const profiler::Progress&)>& progress,
                              bool inspected) {
  MeasuredLayers measured;
  if (!workload.device().device.is_cpu()) {
    measured = on_gpu(scenario, workload, over, stop, progress);
  } else {
    measured.costs = costs_on_cores(scenario, workload, over, stop, progress);
    if (inspected && !stop)
      measured.inspection = inspect_on_cpu(scenario, workload, stop);
  }
  if (stop)
    throw Stopped{};
  return measured;
}

plan::LayerCosts measure_costs(const plan::Scenario& scenario, const Workload& workload,
                               plan::Seconds over, const std::atomic<bool>& stop,
                               const std::function<void(const profiler::Progress&)>& progress) {
  return measure_layers(scenario, workload, over, stop, progress).costs;
}

std::string layer_name(const plan::LayerCosts& costs, int layer) {
  if (layer < 0)
    return "";
  const auto at = static_cast<std::size_t>(layer);
  return at < costs.layers.size() ? costs.layers[at].name : costs.loss.name;
}

std::string by_the_hosts_clock(const MeasuredLayers& measured) {
  return measured.why_host_clock +
         "\nso the costs are by the host's clock, which waits for the GPU after each layer";
}

}  // namespace pipewright::loop
