#include "pipewright/sim/scenario/scenario_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

#include "pipewright/plan/costs/usable_costs.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/model/model_descriptor.hpp"
#include "pipewright/plan/partitioners/layer_weights.hpp"
#include "pipewright/plan/program/computation.hpp"
#include "pipewright/plan/program/deadlock.hpp"
#include "pipewright/plan/scenario/scenario_cut.hpp"
#include "pipewright/plan/schedules/schedule_counts.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "pipewright/sim/memory/memory_cap.hpp"
#include "pipewright/sim/scenario/device_memory.hpp"

namespace pipewright::sim {
namespace {

constexpr std::size_t most_structures = 16;

/// Throws InputError unless the costs are those of the scenario's tensor-parallel, context-parallel
/// and expert-parallel ranks.
void require_shards(const plan::Pipeline& pipeline, const plan::LayerCosts& costs) {
  const auto require = [](const char* axis, int given, int wanted) {
    if (given != wanted)
      throw plan::InputError(fmt::format(
          "the costs are for layers partitioned among {} ranks along {}, but pipeline.{} "
          "is {}: measure or estimate costs for that size",
          given, axis, axis, wanted));
  };
  if (costs.tensor > 1)  // costs of whole layers can be divided among ranks
    require("tensor", costs.tensor, pipeline.tensor);
  require("context", costs.context, pipeline.context);
  if (costs.expert > 1)
    require("expert", costs.expert, pipeline.expert);
}

/// Rejects costs from a file that belong to another model or another microbatch size.
void check_costs(const plan::Scenario& scenario, const plan::LayerCosts& costs) {
  const plan::Model model = model_of(scenario);
  if (costs.layers.size() != model.layers.size())
    throw plan::InputError(fmt::format("the costs are for {} layers, but the model has {}",
                                       costs.layers.size(), model.layers.size()));
  // For 16-bit training, costs may be measured in 16 bits or in the model's own 32 bits. Bytes of a
  // transformer are counted in 16 bits, so its costs may be measured in the precision of the
  // training.
  const auto fits = [&](plan::Bytes measured, const plan::Layer& layer) {
    const bool in_half = layer.dtype == "bfloat16";
    const int model_bytes = in_half ? 2 : 4;
    const int bytes = plan::bytes_per_parameter(costs).value_or(model_bytes);
    return measured == layer.parameter_bytes ||
           ((in_half || plan::is_mixed(scenario.training.precision)) &&
            measured * model_bytes == layer.parameter_bytes * bytes);
  };
  require_shards(scenario.pipeline, costs);
  const bool is_whole = costs.tensor * costs.expert == 1;
  for (std::size_t l = 0; l < model.layers.size(); ++l)
    if (costs.layers[l].name != model.layers[l].name ||
        (is_whole && !fits(costs.layers[l].parameters, model.layers[l])))
      throw plan::InputError(fmt::format(
          "the costs of layer {} are for \"{}\" of {} parameter bytes ({}), but the model has "
          "\"{}\" of {} there",
          l, costs.layers[l].name, costs.layers[l].parameters.value, costs.dtype,
          model.layers[l].name, model.layers[l].parameter_bytes.value));
  if (costs.microbatch_size != scenario.training.microbatch_size)
    throw plan::InputError(
        fmt::format("the costs are for microbatches of {}, but training.microbatch_size is {}",
                    costs.microbatch_size, scenario.training.microbatch_size));
}

/// Returns the costs for schedules that order their actions by them. The transfer time is that of
/// the slowest transfer between neighboring stages on different nodes, or on different ranks if
/// there is one node.
plan::ScheduleCosts schedule_costs(const std::vector<plan::StageCost>& stages,
                                   const plan::Cluster& cluster) {
  plan::ScheduleCosts costs{.stages = {stages.begin(), stages.end()}};
  const plan::Link& link = cluster.nodes > 1 ? cluster.between_nodes : cluster.within_node;
  for (const plan::StageCost& stage : stages)
    costs.transfer = std::max(costs.transfer, plan::occupancy(link, stage.output) + link.latency);
  return costs;
}

/// Returns the stages that share a weight: at least two, or none.
std::vector<int> tied_stages(const std::vector<plan::StageCost>& costs) {
  std::vector<int> tied;
  for (std::size_t stage = 0; stage < costs.size(); ++stage)
    if (costs[stage].tied > plan::Bytes{})
      tied.push_back(static_cast<int>(stage));
  return tied.size() < 2 ? std::vector<int>{} : tied;
}

std::shared_ptr<const Structure> structure_of(const plan::ScheduleRequest& request,
                                              const plan::Schedule& schedule,
                                              const plan::LoweringOptions& options,
                                              StructureCache* cache) {
  const auto build = [&] {
    return std::make_shared<Structure>(plan::lower(request, schedule, options));
  };
  if (cache == nullptr)
    return build();
  const bool says_program = request.own && request.own->lower;
  const StructureCache::Key key{schedule, options, says_program ? request.own : nullptr};
  auto structure = cache->find(key);
  if (!structure) {
    structure = build();
    cache->insert(key, structure);
  }
  return structure;
}

std::vector<int> boundaries_of(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                               int stages) {
  const plan::PartitionChoice& choice = scenario.pipeline.partition;
  if (const auto* boundaries = std::get_if<std::vector<int>>(&choice)) {
    plan::require_boundaries(*boundaries, stages, static_cast<int>(costs.layers.size()));
    return *boundaries;
  }
  const auto& method = std::get<std::string>(choice);
  return plan::boundaries_by(method, plan::weights_by(method, model_of(scenario), costs), stages);
}

/// Sets the boundaries and costs of the stages. Some schedules are ordered by these times, so they
/// must be usable.
void cut(ScenarioPlan& plan, const plan::Scenario& scenario, const plan::LayerCosts& costs,
         int stages) {
  check_costs(scenario, costs);
  plan.partition.boundaries = boundaries_of(scenario, costs, stages);
  plan::require_usable(costs, plan.partition, /*training=*/false);
  plan.costs = step_costs_of(scenario, costs, plan.partition);
}

/// Checks conditions that depend on the Program.
void finish(ScenarioPlan& plan, const plan::Scenario& scenario, const plan::LayerCosts& costs) {
  plan::require_usable(costs, plan.partition, !plan::is_forward_only(plan.program()));
  require_cap_above_standing(plan.program(), plan.costs.stages, plan::cluster_of_ranks(scenario));
}

/// The memory and time of a plan's Program, and how far it exceeds the cap.
struct Weighed {
  Need need;
  std::optional<MemoryExcess> over;
};

Weighed weigh(const plan::Scenario& scenario, const plan::LayerCosts& costs,
              const ScenarioPlan& plan) {
  Simulator simulator(*plan.structure);
  MemoryModel model(*plan.structure, holding_of(scenario, plan.program()));
  const Times& times = simulator.run_shared(plan.costs);
  const MemoryCurves& curves = model.curves(plan.costs, times);
  const std::vector<plan::Bytes> needs = needs_of(scenario, costs, plan, curves.peaks);
  auto over = over_cap(*plan.structure, model, curves, plan.costs, times,
                       plan::cluster_of_ranks(scenario), needs);
  return {{*std::max_element(needs.begin(), needs.end()), {times.iteration}, !over},
          std::move(over)};
}

bool is_over_cap(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                 const ScenarioPlan& plan) {
  return limits_memory(scenario.cluster) && weigh(scenario, costs, plan).over;
}

/// Returns the largest limit with which every rank's memory fits its device; nothing if even the
/// smallest does not suffice. `place` makes the plan with a limit; without one it exceeds the cap.
std::optional<int> loosest_limit(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                                 const ScenarioPlan& plan,
                                 const std::function<void(std::optional<int>)>& place) {
  const auto fits = [&](int units) {
    try {
      place(units);
      return !is_over_cap(scenario, costs, plan);
    } catch (const plan::InputError&) {
      return false;  // no microbatch fits within the limit
    }
  };
  const auto peaks = plan::peak_memory_units(plan.schedule);
  int fitting = 0, too_many = *std::max_element(peaks.begin(), peaks.end());
  while (too_many - fitting > 1) {
    const int between = (fitting + too_many) / 2;
    (fits(between) ? fitting : too_many) = between;
  }
  return fitting == 0 ? std::nullopt : std::optional(fitting);
}

/// Returns the FLOPs per second of all devices of a job; 0: unknown for one of them.
double peak_of_job(const plan::Scenario& scenario) {
  const plan::Cluster& cluster = scenario.cluster;
  const int devices = plan::ranks_of_job(scenario.pipeline);
  if (!cluster.mixture)
    return cluster.device.flops_per_s * devices;
  double peak = 0;
  for (int device = 0; device < devices; ++device) {
    const plan::NodeKind* const kind = plan::kind_of(cluster, device);
    const double own = (kind == nullptr ? cluster.device : kind->device).flops_per_s;
    if (!(own > 0))
      return 0;
    peak += own;
  }
  return peak;
}

/// Returns nothing if the scenario with that change cannot be planned.
std::optional<Need> need_of(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                            const std::string& change, bool trained) {
  try {
    const plan::Scenario changed = plan::changed(scenario, change);
    if (trained && !plan::only_predicted(changed, plan::RankTransport::Threads).empty())
      return {};
    return weigh(changed, costs, lay_out(changed, costs)).need;
  } catch (const plan::InputError&) {
    return {};
  } catch (const plan::Infeasible&) {
    return {};
  }
}

}  // namespace

plan::LoweringOptions lowering_of(const plan::Scenario& scenario) {
  const plan::Pipeline& pipeline = scenario.pipeline;
  plan::LoweringOptions options = plan::lowering_of(plan::request_of(pipeline));
  options.communicators = pipeline.communicators;
  options.transfers = pipeline.transfers;
  options.blocking = pipeline.blocking;
  options.replicas = pipeline.replicas * pipeline.context;
  options.overlap_reductions = pipeline.overlap_reductions;
  options.recompute = scenario.training.recompute;
  options.zero = scenario.training.zero;
  options.gradient_norm = plan::needs_gradient_norm(scenario.training);
  options.share_loss = true;
  return options;
}

Holding holding_of(const plan::Scenario& scenario, const plan::Program& program) {
  const std::size_t copies =
      program.placement.routes.size() * static_cast<std::size_t>(scenario.pipeline.replicas);
  const auto groups = static_cast<std::size_t>(scenario.training.gradient_groups);
  return {scenario.pipeline.local_transfer,
          static_cast<int>(std::max<std::size_t>(1, groups / copies)),
          scenario.training.cuda_graphs};
}

plan::Program sound_program(const plan::Scenario& scenario) {
  const plan::ScheduleRequest request = plan::request_of(scenario.pipeline);
  const plan::Program program =
      plan::lower(request, plan::make_training_schedule(request), lowering_of(scenario));
  if (const auto deadlock = plan::find_deadlock(plan::Dependencies(program)))
    throw plan::Infeasible(*deadlock);
  return program;
}

ScenarioPlan lay_out(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                     StructureCache* cache) {
  ScenarioPlan plan;
  plan::ScheduleRequest request = plan::request_of(scenario.pipeline);
  cut(plan, scenario, costs, plan::stage_count(request));
  request.costs = schedule_costs(plan.costs.stages, scenario.cluster);
  plan::LoweringOptions options = lowering_of(scenario);
  options.tied_stages = tied_stages(plan.costs.stages);
  const auto place = [&](std::optional<int> memory_units) {
    request.memory_units = memory_units;
    plan.schedule = plan::make_training_schedule(request);
    plan.structure = structure_of(request, plan.schedule, options, cache);
  };
  const std::optional<int> asked = request.memory_units;
  place(asked);
  finish(plan, scenario, costs);
  if (!asked && plan::descriptor_of(request).takes_memory_units &&
      is_over_cap(scenario, costs, plan))
    place(loosest_limit(scenario, costs, plan, place));
  return plan;
}

plan::Scenario placed(plan::Scenario scenario, const ScenarioPlan& plan) {
  scenario.pipeline.partition = plan.partition.boundaries;
  return scenario;
}

void require_memory(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                    const ScenarioPlan& plan, bool trained) {
  if (!limits_memory(scenario.cluster))
    return;
  const auto over = weigh(scenario, costs, plan).over;
  if (!over)
    return;
  const auto remedy = smallest_change(leaner_changes(scenario), [&](const std::string& change) {
    return need_of(scenario, costs, change, trained);
  });
  throw plan::Infeasible(refusal(*over, remedy));
}

std::shared_ptr<const Structure> StructureCache::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_)
    if (entry.key == key)
      return entry.structure;
  return nullptr;
}

void StructureCache::insert(Key key, std::shared_ptr<const Structure> structure) {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_)
    if (entry.structure == structure)
      return;
  entries_.push_back({std::move(key), std::move(structure)});
  if (entries_.size() > most_structures)
    entries_.erase(entries_.begin());
}

Throughput throughput_of(const plan::Scenario& scenario, const ScenarioPlan& plan,
                         double iteration_s) {
  if (!(iteration_s > 0))
    throw plan::InputError(
        fmt::format("an iteration takes {} s: its costs must be more than 0 to "
                    "give a throughput",
                    iteration_s));
  const plan::Pipeline& pipeline = scenario.pipeline;
  const auto& lengths = scenario.training.microbatch_lengths;
  const double microbatches = lengths.empty()
                                  ? static_cast<double>(plan.program().microbatches)
                                  : std::accumulate(lengths.begin(), lengths.end(), 0.0);
  const double samples = microbatches * scenario.training.microbatch_size * pipeline.replicas;
  Throughput throughput;
  throughput.unit = scenario.model.descriptor().unit;
  throughput.units_per_s = samples * plan::sample_of(scenario.model).units / iteration_s;
  const double peak = peak_of_job(scenario);
  if (!(peak > 0))
    return throughput;
  const double passes = plan::is_forward_only(plan.program()) ? 1 : 3;
  double flops = 0;
  for (const plan::Layer& layer : model_of(scenario).layers)
    flops += passes * layer.forward_flops;
  throughput.mfu = flops * samples / (iteration_s * peak);
  if (!std::isfinite(throughput.mfu))
    throw plan::InputError(fmt::format(
        "the devices' peak of {} FLOP/s and an iteration of {} s give no finite utilization", peak,
        iteration_s));
  return throughput;
}

}  // namespace pipewright::sim
