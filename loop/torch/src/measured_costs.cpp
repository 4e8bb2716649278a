#include "pipewright/loop_torch/measured_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "pipewright/exec/cpu/core.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/stopped.hpp"

namespace pipewright::loop {
namespace {

/// Returns how many ranks compute at once on one of the scenario's nodes, limited to the cores of
/// this machine.
int busy_cores(const plan::Scenario& scenario) {
  const int ranks = plan::ranks_of_job(scenario.pipeline);
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return std::min({ranks, scenario.cluster.devices_per_node, cores});
}

/// Returns the place of the first tensor-parallel rank, with one partial sum per rank.
profiler::ShardSeat seat_of(const plan::Scenario& scenario) {
  return {.index = 0,
          .count = scenario.pipeline.tensor,
          .groups = scenario.pipeline.tensor,
          .copies = scenario.pipeline.local_transfer == plan::TensorTransfer::Copy};
}

/// The cached costs by layer, the loss last.
class CachedCosts {
 public:
  CachedCosts(const plan::Scenario& scenario, const Workload& workload,
              const MeasureOptions& options, std::vector<profiler::LayerOutline> outlines)
      : outlines_(std::move(outlines)), entries_(outlines_.size()) {
    if (options.cache.empty())
      return;
    cache_.emplace(options.cache, facts_of_costs(scenario, workload, busy_cores(scenario)),
                   options.say);
    for (std::size_t layer = 0; layer < outlines_.size() && !options.fresh; ++layer)
      entries_[layer] = cache_->find(outlines_[layer].alike);
    layers_.folder = options.cache;
  }

  const std::vector<profiler::LayerOutline>& outlines() const { return outlines_; }
  std::vector<bool> by_layer() const {
    std::vector<bool> known;
    for (const auto& entry : entries_)
      known.push_back(entry.has_value());
    return known;
  }

  /// Writes the cached costs into `costs`, and stores the new ones in the cache if they were
  /// measured well. Identical layers are stored once, with their typical cost.
  CachedLayers fill(plan::LayerCosts& costs, const std::vector<profiler::EquivalentLayers>& alike,
                    bool well) {
    std::set<std::string> kept;
    for (const profiler::EquivalentLayers& kind : alike) {
      const auto first = static_cast<std::size_t>(kind.layers.front());
      kept.insert(outlines_[first].alike);
      if (cache_ && well && !kind.measured.empty())
        cache_->keep(outlines_[first].alike, kind.typical);
    }
    for (std::size_t layer = 0; layer < entries_.size(); ++layer) {
      plan::LayerCost& cost = layer < costs.layers.size() ? costs.layers[layer] : costs.loss;
      if (const auto& entry = entries_[layer]) {
        const std::string name = cost.name;
        cost = entry->cost;
        cost.name = name;
        layers_.layers += layer < costs.layers.size() ? 1 : 0;
        if (layers_.since.empty() || entry->measured < layers_.since)
          layers_.since = entry->measured;
      } else if (cache_ && well && kept.insert(outlines_[layer].alike).second) {
        cache_->keep(outlines_[layer].alike, cost);
      }
    }
    return layers_;
  }

 private:
  std::vector<profiler::LayerOutline> outlines_;
  std::optional<CostCache> cache_;
  std::vector<std::optional<CostCache::Entry>> entries_;
  CachedLayers layers_;
};

MeasuredLayers on_cores(const plan::Scenario& scenario, const Workload& workload,
                        const std::atomic<bool>& stop, const MeasureOptions& options) {
  std::vector<std::unique_ptr<profiler::LayerBench>> benches;
  for (int core = 0; core < busy_cores(scenario); ++core)
    benches.push_back(std::make_unique<profiler::LayerBench>(workload.setup(), exec::RankDevice{},
                                                             seat_of(scenario)));
  CachedCosts known(scenario, workload, options, profiler::outlines_of(*benches.front()));
  profiler::Cores cores = profiler::rank_cores(benches);
  profiler::Profiled profiled = profiler::profile_layers(benches, cores,
                                                         {.settings = scenario.profile,
                                                          .report = options.progress,
                                                          .stop = &stop,
                                                          .over = options.over,
                                                          .enough_passes = options.enough_passes,
                                                          .outlines = known.outlines(),
                                                          .known = known.by_layer()});
  MeasuredLayers measured{std::move(profiled.costs), {}};
  measured.alike = std::move(profiled.alike);
  measured.at_once = profiled.at_once;
  const bool well = profiled.at_once == static_cast<int>(benches.size()) &&
                    profiled.passes >= scenario.profile.least_repeats;
  if (!stop)
    measured.known = known.fill(measured.costs, measured.alike, well);
  return measured;
}

constexpr int inspected_passes = 12;

/// Inspects layers of its own, because measuring trains them.
profiler::Inspection inspect_on_cpu(const plan::Scenario& scenario, const Workload& workload,
                                    const std::atomic<bool>& stop) {
  const profiler::LayerBench bench(workload.setup(), exec::RankDevice{}, seat_of(scenario));
  const auto source = profiler::operator_source();
  return profiler::inspect(bench, *source, inspected_passes, &stop);
}

/// Measures on the calling thread, which owns the stream of the bench.
MeasuredLayers on_bench_of_gpu(const plan::Scenario& scenario, const Workload& workload,
                               const std::atomic<bool>& stop, const MeasureOptions& options) {
  profiler::LayerBench bench(workload.setup(), workload.device(), seat_of(scenario));
  profiler::Profiled profiled =
      profiler::profile_layers(bench, {.settings = scenario.profile,
                                       .report = options.progress,
                                       .stop = &stop,
                                       .over = options.over,
                                       .enough_passes = options.enough_passes});
  MeasuredLayers measured{std::move(profiled.costs), {}};
  measured.alike = std::move(profiled.alike);
  measured.costs.workspaces = exec::product_workspaces(workload.device());
  std::unique_ptr<profiler::ActivitySource> source;
  try {
    source = profiler::cupti_source(workload.device().device);
  } catch (const plan::InputError& refused) {
    measured.why_host_clock = refused.what();
    return measured;
  }
  measured.inspection =
      profiler::inspect(bench, *source, inspected_passes, &stop, scenario.training.cuda_graphs);
  measured.costs =
      profiler::with_device_times(std::move(measured.costs), *measured.inspection, measured.alike);
  return measured;
}

MeasuredLayers on_gpu(const plan::Scenario& scenario, const Workload& workload,
                      const std::atomic<bool>& stop, const MeasureOptions& options) {
  MeasuredLayers measured = on_bench_of_gpu(scenario, workload, stop, options);
  // Otherwise a rank that gets the bench's stream would find workspaces allocated that other ranks
  // are charged for.
  exec::release_product_workspaces();
  return measured;
}

}  // namespace

MeasuredLayers measure_layers(const plan::Scenario& scenario, const Workload& workload,
                              const std::atomic<bool>& stop, const MeasureOptions& options) {
  MeasuredLayers measured;
  if (!workload.device().device.is_cpu()) {
    measured = on_gpu(scenario, workload, stop, options);
  } else {
    measured = on_cores(scenario, workload, stop, options);
    if (options.inspected && !stop && measured.known.layers == 0)
      measured.inspection = inspect_on_cpu(scenario, workload, stop);
  }
  if (stop)
    throw plan::Stopped{};
  measured.costs.reads_on_rank = workload.device().device.is_cpu() &&
                                 !exec::have_second_cores(plan::ranks_of_job(scenario.pipeline));
  return measured;
}

plan::LayerCosts measure_costs(const plan::Scenario& scenario, const Workload& workload,
                               plan::Seconds over, const std::atomic<bool>& stop,
                               const std::function<void(const profiler::Progress&)>& progress) {
  return measure_layers(scenario, workload, stop, {.over = over, .progress = progress}).costs;
}

namespace {

/// Returns "24 layers like block0, measured at 3 places: within 2.1 %", or "" if every layer was
/// measured.
std::string in_words(const profiler::EquivalentLayers& kind, const plan::LayerCosts& costs) {
  const auto places = kind.measured.size();
  if (places == 0 || places == kind.layers.size())
    return "";
  return fmt::format("{} layers like {}, measured at {} place{}: within {:.1f} %\n",
                     kind.layers.size(), layer_name(costs, kind.layers.front()), places,
                     places == 1 ? "" : "s", 100 * kind.within);
}

}  // namespace

std::string in_words(const MeasuredLayers& measured) {
  std::string text;
  if (const CachedLayers& known = measured.known; known.layers > 0)
    text += fmt::format(
        "{} of {} layers use costs measured on {}, from {}; --fresh measures them again\n",
        known.layers, measured.costs.layers.size(), known.since, known.folder.string());
  for (const profiler::EquivalentLayers& kind : measured.alike)
    text += in_words(kind, measured.costs);
  if (measured.at_once < measured.costs.busy_cores)
    text += fmt::format(
        "memory sufficed for {} of {} copies of the largest layers: their times with {} busy cores "
        "were measured with {}\n",
        measured.at_once, measured.costs.busy_cores, measured.costs.busy_cores, measured.at_once);
  return text;
}

plan::Json alike_json(const MeasuredLayers& measured) {
  plan::Json kinds;
  for (const profiler::EquivalentLayers& kind : measured.alike)
    if (!kind.measured.empty())
      kinds.push_back(
          {{"layers", kind.layers}, {"measured", kind.measured}, {"within", kind.within}});
  return kinds;
}

std::string layer_name(const plan::LayerCosts& costs, int layer) {
  if (layer < 0)
    return "";
  const auto at = static_cast<std::size_t>(layer);
  return at < costs.layers.size() ? costs.layers[at].name : costs.loss.name;
}

std::string host_clock_message(const MeasuredLayers& measured) {
  return measured.why_host_clock +
         "\nso the costs are by the host's clock, which waits for the GPU after each layer";
}

}  // namespace pipewright::loop
