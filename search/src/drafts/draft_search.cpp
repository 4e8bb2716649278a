#include "pipewright/search/drafts/draft_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "pipewright/plan/cluster/even_memory.hpp"
#include "pipewright/plan/cluster/node_orders.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalog.hpp"
#include "pipewright/plan/model/hugging_face_shape.hpp"
#include "pipewright/plan/partitioners/layer_weights.hpp"
#include "pipewright/plan/scenario/kinds_of_ranks.hpp"
#include "pipewright/plan/scenario/scenario_cut.hpp"
#include "pipewright/search/planner/plan_words.hpp"
#include "pipewright/sim/scenario/boundary_simulator.hpp"
#include "pipewright/sim/scenario/fastest_partition.hpp"
#include "pipewright/sim/structure/step_costs.hpp"
#include "planner/layers_between.hpp"
#include "require_axes.hpp"

namespace pipewright::search {
namespace {

// With more devices than this, every candidate uses more than three quarters of them.
constexpr int small_job = 16;
// The number of fastest plans with balanced stages whose boundaries are searched: at least
// `least_refined`, or `refined_for_each` for each plan that is wanted.
constexpr std::size_t least_refined = 20;
constexpr std::size_t refined_for_each = 2;
// The most devices among which ranks are placed.
constexpr int most_devices = 100'000;
// The number of too large plans whose whole memory is compared to name the smallest.
constexpr int most_weighed = 20;

std::vector<int> up_to(int most) {
  std::vector<int> numbers(static_cast<std::size_t>(std::max(0, most)));
  std::iota(numbers.begin(), numbers.end(), 1);
  return numbers;
}

std::vector<std::string> usual_schedules() {
  std::vector<std::string> names;
  for (const plan::ScheduleDescriptor& schedule : plan::schedules())
    if (schedule.trains_batch() && !schedule.orders_by_times)
      names.push_back(schedule.name);
  return names;
}

/// Returns the boundaries of stages with equally many blocks; layers before and after the blocks
/// belong to the first and the last stage. Returns nothing if the stages do not divide the blocks,
/// or the schedule does not support the sizes.
std::optional<std::vector<int>> equal_boundaries(const plan::Scenario& scenario) {
  const std::vector<plan::Layer> layers = model_of(scenario).layers;
  const auto is_block = [](const plan::Layer& layer) { return layer.checkpointable; };
  const auto first = std::ranges::find_if(layers, is_block);
  const auto last = std::find_if(layers.rbegin(), layers.rend(), is_block).base();
  const bool has_blocks = first < last;
  const auto ahead = static_cast<int>(has_blocks ? first - layers.begin() : 0);
  const auto blocks = static_cast<int>(has_blocks ? last - first : layers.end() - layers.begin());
  int stages = 1;
  try {
    stages = stage_count(request_of(scenario.pipeline));
  } catch (const plan::InputError&) {
    return {};
  }
  if (blocks % stages != 0)
    return {};
  std::vector<int> boundaries{0};
  for (int stage = 1; stage < stages; ++stage)
    boundaries.push_back(ahead + stage * (blocks / stages));
  boundaries.push_back(static_cast<int>(layers.size()));
  return boundaries;
}

/// A candidate, with stages that balance the layers or have the boundaries that the scenario gives.
struct DraftCandidate {
  plan::Scenario scenario;
  std::vector<int> devices;
  // Set by the simulation.
  double iteration_s = 0;
  plan::Bytes peak{};
};

PlanFigures figures_of(const DraftCandidate& candidate) {
  return {candidate.iteration_s, static_cast<double>(candidate.peak.value)};
}

/// Enumerates all candidates of a search of a draft.
class DraftChoices {
 public:
  DraftChoices(const plan::Scenario& base, const DraftSpace& space)
      : base_(base), space_(space), speeds_(space.speeds) {
    const plan::Pipeline& pipeline = base.pipeline;
    devices_ = space.devices > 0 ? space.devices : plan::ranks_of_job(pipeline);
    for (int device = static_cast<int>(speeds_.size()); device < devices_; ++device)
      speeds_.push_back(plan::kind_speed(base.cluster, device));
    samples_ = pipeline.replicas * pipeline.microbatches * base.training.microbatch_size;
    const int groups = base.training.gradient_groups;
    groups_ = groups > 0 ? groups : pipeline.replicas;
  }

  std::vector<DraftCandidate> all() {
    const plan::Pipeline& own = base_.pipeline;
    plan::Pipeline pipeline = own;
    for (const int tensor : asked_or(space_.tensor, {own.tensor}))
      for (const int context : asked_or(space_.context, {own.context})) {
        pipeline.tensor = tensor;
        pipeline.context = context;
        with_layers(pipeline);
      }
    return std::move(found_);
  }

 private:
  /// Adds the pipeline and data sizes for which the devices suffice.
  void with_layers(plan::Pipeline pipeline) {
    const int layers = static_cast<int>(model_of(base_).layers.size());
    const int places = devices_ / (pipeline.tensor * pipeline.context);
    for (const int ranks : asked_or(space_.pipeline, up_to(std::min(places, layers))))
      for (const int replicas : up_to(places / std::max(1, ranks))) {
        pipeline.ranks = ranks;
        pipeline.replicas = replicas;
        if (uses_enough(plan::ranks_of_job(pipeline)) &&
            (!space_.keeps_bits || groups_ % replicas == 0))
          with_experts(pipeline, layers);
      }
  }

  bool uses_enough(int used) const { return devices_ <= small_job || 4 * used > 3 * devices_; }

  void with_experts(plan::Pipeline pipeline, int layers) {
    for (const int expert : asked_or(space_.expert, {base_.pipeline.expert})) {
      pipeline.expert = expert;
      if (pipeline.replicas * pipeline.context % expert == 0)
        with_microbatch(pipeline, layers);
    }
  }

  void with_microbatch(const plan::Pipeline& pipeline, int layers) {
    const plan::Training& training = base_.training;
    const std::vector<int> own{training.microbatch_size};
    for (const int microbatch : space_.keeps_bits ? own : asked_or(space_.microbatch, own)) {
      if (samples_ % (pipeline.replicas * microbatch) != 0)
        continue;
      plan::Scenario scenario = base_;
      scenario.cluster.rank_memory.clear();
      scenario.pipeline = pipeline;
      scenario.pipeline.microbatches = samples_ / (pipeline.replicas * microbatch);
      scenario.pipeline.partition = "profile";
      scenario.training.microbatch_size = microbatch;
      scenario.training.microbatch_lengths.clear();
      if (space_.keeps_bits)
        scenario.training.gradient_groups = groups_;
      if (base_.cluster.mixture && space_.speeds.empty())
        in_all_orders(scenario, layers);
      else
        with_devices(put_on_fastest(scenario), layers);
    }
  }

  /// Assigns stages to kinds of nodes in all orders; among orders with equal ranks, uses the first.
  void in_all_orders(plan::Scenario scenario, int layers) {
    const int used = plan::ranks_of_job(scenario.pipeline);
    std::vector<plan::Cluster> known;
    for (const plan::NodeOrder& order : plan::node_orders(base_.cluster, used)) {
      scenario.cluster = order.cluster;
      scenario.cluster.rank_speeds.clear();
      scenario.cluster.rank_memory.clear();
      const plan::Cluster of_ranks = plan::cluster_of_ranks(scenario);
      if (std::find(known.begin(), known.end(), of_ranks) != known.end())
        continue;
      known.push_back(of_ranks);
      with_devices({.scenario = scenario, .devices = devices_in(order, used)}, layers);
    }
  }

  std::vector<int> devices_in(const plan::NodeOrder& order, int used) const {
    const int in_node = base_.cluster.devices_per_node;
    std::vector<int> devices;
    for (int device = 0; device < used; ++device) {
      const auto node = static_cast<std::size_t>(plan::node_of(base_.cluster, device));
      devices.push_back(order.nodes[node] * in_node + device % in_node);
    }
    return devices;
  }

  void with_devices(DraftCandidate candidate, int layers) {
    plan::Pipeline& pipeline = candidate.scenario.pipeline;
    for (const std::string& schedule : asked_or(space_.schedules, usual_schedules()))
      for (const int chunks :
           asked_or(space_.chunks, plan::usual_chunks(plan::find_schedule(schedule).chunks)))
        if (pipeline.ranks * chunks <= layers &&
            (pipeline.ranks > 1 || schedule == plan::default_schedule().name)) {
          plan::choose_schedule(pipeline, schedule);
          pipeline.chunks = chunks;
          with_stage_sizes(candidate);
        }
  }

  void with_stage_sizes(DraftCandidate candidate) {
    plan::Pipeline& pipeline = candidate.scenario.pipeline;
    for (const StageSizes sizes : asked_or(space_.stage_sizes, {StageSizes::Balanced})) {
      pipeline.partition = "profile";
      if (sizes == StageSizes::Equal) {
        const auto boundaries = equal_boundaries(candidate.scenario);
        if (!boundaries)
          continue;
        pipeline.partition = *boundaries;
      }
      with_memory(candidate);
    }
  }

  void with_memory(DraftCandidate candidate) {
    const plan::Training& training = base_.training;
    plan::Pipeline& pipeline = candidate.scenario.pipeline;
    for (const auto recompute : asked_or(space_.recompute, {training.recompute}))
      for (const int zero : asked_or(space_.zero, {training.zero})) {
        if (zero > 0 && pipeline.replicas * pipeline.context == 1 && training.zero == 0)
          continue;
        candidate.scenario.training.recompute = recompute;
        candidate.scenario.training.zero = zero;
        for (const bool sequence_parallel : sequence_parallel_of(pipeline)) {
          pipeline.sequence_parallel = sequence_parallel;
          found_.push_back(candidate);
        }
      }
  }

  std::vector<bool> sequence_parallel_of(const plan::Pipeline& pipeline) const {
    return pipeline.tensor == 1
               ? std::vector<bool>{false}
               : asked_or(space_.sequence_parallel, {base_.pipeline.sequence_parallel});
  }

  /// Places ranks on the fastest devices, in their order. A rank's replicas wait for the slowest of
  /// them, and any rank may be on any device.
  DraftCandidate put_on_fastest(plan::Scenario scenario) const {
    const auto ranks = static_cast<std::size_t>(scenario.pipeline.ranks);
    const auto of_rank = static_cast<std::size_t>(plan::ranks_of_job(scenario.pipeline)) / ranks;
    std::vector<int> devices(speeds_.size());
    std::iota(devices.begin(), devices.end(), 0);
    std::stable_sort(devices.begin(), devices.end(), [&](int a, int b) {
      return speeds_[static_cast<std::size_t>(a)] > speeds_[static_cast<std::size_t>(b)];
    });
    devices.resize(ranks * of_rank);
    std::sort(devices.begin(), devices.end());
    scenario.cluster.device.memory = least_memory(base_.cluster);
    scenario.cluster.mixture.reset();
    auto& by_rank = scenario.cluster.rank_speeds;
    by_rank.assign(ranks, std::numeric_limits<double>::infinity());
    for (std::size_t at = 0; at < devices.size(); ++at)
      by_rank[at / of_rank] =
          std::min(by_rank[at / of_rank], speeds_[static_cast<std::size_t>(devices[at])]);
    if (std::all_of(by_rank.begin(), by_rank.end(), [](double speed) { return speed == 1; }))
      by_rank.clear();
    return {.scenario = std::move(scenario), .devices = std::move(devices)};
  }

  const plan::Scenario& base_;
  const DraftSpace& space_;
  std::vector<double> speeds_;
  int devices_ = 0, samples_ = 0, groups_ = 1;
  std::vector<DraftCandidate> found_;
};

/// Returns boundaries in proportion to speeds. Each stage ends with the layer whose end is nearest
/// to the stage's share of all weights; each has at least one layer.
std::vector<int> boundaries_by_speed(const std::vector<double>& weights,
                                     const std::vector<double>& speeds) {
  const auto layers = static_cast<int>(weights.size()), stages = static_cast<int>(speeds.size());
  const double speed = std::accumulate(speeds.begin(), speeds.end(), 0.0),
               weight = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int> boundaries{0};
  double wanted = 0, reached = 0;
  for (int stage = 0; stage + 1 < stages; ++stage) {
    wanted += weight * speeds[static_cast<std::size_t>(stage)] / speed;
    int end = boundaries.back();
    const int most = layers - (stages - 1 - stage);
    do
      reached += weights[static_cast<std::size_t>(end++)];
    while (end < most && reached + weights[static_cast<std::size_t>(end)] / 2 < wanted);
    boundaries.push_back(end);
  }
  boundaries.push_back(layers);
  return boundaries;
}

/// The candidates of a draft with stages that balance the layers, as a Space for `search`. It keeps
/// all that were simulated.
class BalancedDrafts {
 public:
  using Plan = DraftCandidate;

  BalancedDrafts(const Draft& base, const DraftSpace& space)
      : base_(base),
        candidates_(DraftChoices(base.scenario, space).all()),
        cap_(cap_of(base.scenario.cluster, space)) {}

  std::size_t size() const { return candidates_.size(); }
  double memory() const { return static_cast<double>(cap().value); }
  /// Returns the limit of evened peaks.
  plan::Bytes cap() const { return cap_; }
  bool fits(plan::Bytes peak) const { return cap() == plan::Bytes{} || peak <= cap(); }

  static bool is_likely(std::size_t /*at*/) { return true; }
  static double least_peak(std::size_t /*at*/) { return 0; }
  double least_s(std::size_t at) {
    const DraftCandidate& candidate = candidates_[at];
    try {
      return iteration_without_bubble(costs_for(candidate), candidate.scenario);
    } catch (const plan::InputError&) {
      return 0;  // there are no estimates for it, and no price either
    }
  }

  DraftCandidate price(const Bound& bound, double /*most_s*/) {
    DraftCandidate candidate = candidates_[bound.candidate];
    sim::BoundarySimulator simulator = simulator_of(candidate);
    const sim::PartitionNeed need = simulator.need(start_of(candidate, simulator));
    candidate.iteration_s = need.iteration.value;
    candidate.peak = need.peak;
    return simulated_.emplace_back(std::move(candidate));
  }

  /// Returns the boundaries from which others are moved: those that balance the layers, weighted by
  /// the speeds of the ranks.
  std::vector<int> start_of(const DraftCandidate& candidate,
                            const sim::BoundarySimulator& simulator) {
    const std::vector<double> speeds = plan::cluster_of_ranks(candidate.scenario).rank_speeds;
    if (has_borders(candidate) ||
        std::equal(speeds.begin() + (speeds.empty() ? 0 : 1), speeds.end(), speeds.begin()))
      return simulator.boundaries();
    std::vector<double> of_stages;
    for (const int rank : simulator.program().placement.routes.front())
      of_stages.push_back(rank < 0 ? 1 : speeds[static_cast<std::size_t>(rank)]);
    return boundaries_by_speed(plan::profile_weights(costs_for(candidate)), of_stages);
  }

  /// Returns true if the candidate's boundaries are given, so they are not moved.
  static bool has_borders(const DraftCandidate& candidate) {
    return std::holds_alternative<std::vector<int>>(candidate.scenario.pipeline.partition);
  }

  /// Returns the simulated candidates, fastest first.
  const std::vector<DraftCandidate>& simulated() {
    std::stable_sort(simulated_.begin(), simulated_.end(),
                     [](const auto& a, const auto& b) { return a.iteration_s < b.iteration_s; });
    return simulated_;
  }

  sim::BoundarySimulator simulator_of(const DraftCandidate& candidate) {
    return {candidate.scenario, costs_for(candidate), structures_};
  }

  /// Returns the plan; `is_roomy` ignores memory limits.
  std::optional<DraftPlan> plan_of(const DraftCandidate& candidate,
                                   const std::vector<int>& boundaries, bool is_roomy = false) {
    DraftPlan found{.draft = draft_of(candidate),
                    .devices = candidate.devices,
                    .figures = {},
                    .fullest = {},
                    .boundaries = boundaries};
    found.draft.scenario.pipeline.partition = boundaries;
    Draft answered = found.draft;
    if (is_roomy)
      answered.scenario.cluster = plan::with_unlimited_memory(answered.scenario.cluster);
    auto answer = what_if_.answer(answered);
    if (!std::holds_alternative<Answer>(answer))
      return {};
    const Answer& told = std::get<Answer>(answer);
    found.figures = told.figures;
    found.fullest = fullest_of(told.devices, candidate.scenario);
    found.mfu = told.throughput.mfu;
    found.memory = told.devices;
    return found;
  }

 private:
  /// Returns the memory limit. If any rank may be on any device, it is the least memory of a
  /// device.
  static plan::Bytes cap_of(const plan::Cluster& cluster, const DraftSpace& space) {
    return cluster.mixture && space.speeds.empty() ? plan::largest_memory(cluster)
                                                   : least_memory(cluster);
  }

  /// Returns the rank with the least headroom, or the one that needs most if no memory is limited.
  static FullestRank fullest_of(const std::vector<models::DeviceMemory>& memory,
                                const plan::Scenario& scenario) {
    const auto caps =
        plan::memory_by_rank(plan::cluster_of_ranks(scenario), scenario.pipeline.ranks);
    FullestRank fullest;
    for (std::size_t rank = 0; rank < caps.size(); ++rank) {
      const FullestRank own{memory[rank].total(), caps[rank]};
      const auto above = [](const FullestRank& one) { return one.needed - one.cap; };
      if (rank == 0 || std::pair(own.cap > plan::Bytes{}, above(own)) >
                           std::pair(fullest.cap > plan::Bytes{}, above(fullest)))
        fullest = own;
    }
    return fullest;
  }

  Draft draft_of(const DraftCandidate& candidate) const {
    return {candidate.scenario, base_.costs};
  }

  plan::LayerCosts costs_for(const DraftCandidate& candidate) const {
    return costs_of(draft_of(candidate));
  }

  const Draft& base_;
  const std::vector<DraftCandidate> candidates_;
  const plan::Bytes cap_;
  std::vector<DraftCandidate> simulated_;
  sim::StructureCache structures_;
  WhatIf what_if_{std::numeric_limits<int>::max()};
};

/// Moves the boundaries of the fastest candidates; once interrupted, keeps the remaining ones
/// unchanged.
class BoundarySearch {
 public:
  /// `started` is the time from which durations are counted.
  BoundarySearch(BalancedDrafts& drafts, const DraftSearchOptions& options,
                 const SearchAccount& account, SearchClock::time_point started)
      : drafts_(drafts), options_(options), started_(started), best_(options.most_plans, false) {
    static_cast<SearchAccount&>(answer_) = account;
    answer_.too_large = 0;  // counted only for balanced stages so far
  }

  DraftAnswer run() {
    const std::vector<DraftCandidate>& all = drafts_.simulated();
    const std::size_t most =
        std::max(least_refined, refined_for_each * static_cast<std::size_t>(options_.most_plans));
    std::vector<const DraftCandidate*> unmoved;  // of those that do not fit
    for (std::size_t at = 0; at < all.size(); ++at) {
      const DraftCandidate& candidate = all[at];
      if (at < most && !answer_.interrupted) {
        refine(candidate);
        ask();
      } else if (!drafts_.fits(candidate.peak)) {
        unmoved.push_back(&candidate);
      } else if (!best_.is_full()) {
        add(candidate, start_of(candidate));
      }
    }
    refine_smallest(std::move(unmoved), most);
    answer_.plans = best_.take();
    find_nearest();
    answer_.seconds = seconds();
    return std::move(answer_);
  }

 private:
  double seconds() const {
    return std::chrono::duration<double>(SearchClock::now() - started_).count();
  }

  struct TooLarge {
    DraftCandidate candidate;
    std::vector<int> boundaries;  // empty: those that balance the layers
    sim::PartitionNeed need;
  };

  std::vector<int> start_of(const DraftCandidate& candidate) {
    return drafts_.start_of(candidate, drafts_.simulator_of(candidate));
  }

  /// If nothing fits so far, moves the boundaries of those candidates that need least memory.
  void refine_smallest(std::vector<const DraftCandidate*> candidates, std::size_t most) {
    std::ranges::stable_sort(candidates, {}, [](const auto* one) { return one->peak; });
    if (!best_.plans().empty())
      most = 0;
    for (std::size_t at = 0; at < candidates.size(); ++at)
      if (at < most && !answer_.interrupted) {
        refine(*candidates[at]);
        ask();
      } else {
        note_too_large(*candidates[at], {}, candidates[at]->iteration_s, candidates[at]->peak);
      }
  }

  /// Moves the boundaries of the candidate's stages, unless they are given.
  void refine(const DraftCandidate& candidate) {
    sim::BoundarySimulator simulator = drafts_.simulator_of(candidate);
    if (BalancedDrafts::has_borders(candidate)) {
      if (drafts_.fits(candidate.peak)) {
        add(candidate, simulator.boundaries());
        return;
      }
      note_too_large(candidate, simulator.boundaries(), candidate.iteration_s, candidate.peak);
      return;
    }
    std::optional<TooLarge> quickest, smallest;  // of the partitions that do not fit
    const auto need_of = [&](const std::vector<int>& boundaries) {
      const sim::PartitionNeed need = simulator.need(boundaries);
      if (drafts_.fits(need.peak))
        return need;
      if (!quickest || need.iteration < quickest->need.iteration)
        quickest = {candidate, boundaries, need};
      if (!smallest || need.peak < smallest->need.peak)
        smallest = {candidate, boundaries, need};
      return need;
    };
    const plan::Bytes cap = drafts_.cap();
    try {
      const auto found =
          sim::fastest_partition(simulator.layers(), drafts_.start_of(candidate, simulator),
                                 need_of, cap == plan::Bytes{} ? std::nullopt : std::optional(cap));
      // The balanced partition is already counted if it fits.
      answer_.simulated +=
          static_cast<std::size_t>(found.simulated) - (drafts_.fits(candidate.peak) ? 1 : 0);
      add(candidate, found.partition.boundaries);
    } catch (const plan::Infeasible&) {
      ++answer_.too_large;
    }
    for (auto* const one : {&quickest, &smallest})
      if (*one)
        too_large_.push_back(std::move(**one));
  }

  void ask() {
    const DraftPlan* const best = best_.plans().empty() ? nullptr : &best_.plans().front();
    if (options_.progress && !options_.progress(answer_.candidates, answer_.candidates, best))
      answer_.interrupted = true;
  }

  void note_too_large(const DraftCandidate& candidate, const std::vector<int>& boundaries,
                      double iteration_s, plan::Bytes peak) {
    ++answer_.too_large;
    too_large_.push_back({candidate, boundaries, {{iteration_s}, peak}});
  }

  void add(const DraftCandidate& candidate, const std::vector<int>& boundaries) {
    auto found = drafts_.plan_of(candidate, boundaries);
    if (!found)
      return;
    if (const FullestRank& rank = found->fullest;
        rank.cap > plan::Bytes{} && rank.needed > rank.cap) {  // although its tensors fit
      --answer_.simulated;
      note_too_large(candidate, boundaries, found->figures.iteration_s, rank.needed);
      return;
    }
    if (best_.plans().empty() || figures_of(*found) < figures_of(best_.plans().front()))
      answer_.best_seconds = seconds();
    best_.add(std::move(*found));
  }

  void find_nearest() {
    const double best = answer_.plans.empty() ? std::numeric_limits<double>::infinity()
                                              : answer_.plans.front().figures.iteration_s;
    std::ranges::stable_sort(too_large_, {}, [](const TooLarge& one) { return one.need.peak; });
    int weighed = 0;
    for (const TooLarge& one : too_large_) {
      if (answer_.nearest &&
          (one.need.peak >= answer_.nearest->fullest.needed || weighed >= most_weighed))
        return;
      if (one.need.iteration.value >= best)
        continue;
      auto plan = drafts_.plan_of(one.candidate,
                                  one.boundaries.empty() ? start_of(one.candidate) : one.boundaries,
                                  /*is_roomy=*/true);
      ++weighed;
      if (plan && (!answer_.nearest || plan->fullest.needed < answer_.nearest->fullest.needed))
        answer_.nearest = std::move(plan);
    }
  }

  BalancedDrafts& drafts_;
  const DraftSearchOptions& options_;
  const SearchClock::time_point started_;
  BestPlans<DraftPlan> best_;
  std::vector<TooLarge> too_large_;
  DraftAnswer answer_;
};

}  // namespace

PlanFigures figures_of(const DraftPlan& plan) {
  return {plan.figures.iteration_s, static_cast<double>(plan.figures.peak.value)};
}

double iteration_without_bubble(const plan::LayerCosts& costs, const plan::Scenario& scenario) {
  if (scenario.training.jitter > 0)
    return 0;
  // Both directions of a bidirectional schedule overlap tensor-parallel communication with compute.
  const auto work = [](const plan::LayerTimes& layer) {
    return (layer.forward - layer.shards + layer.input_gradient - layer.backward_shards +
            layer.weight_gradient)
        .value;
  };
  const plan::LayerCosts own = sim::shard_costs_of(scenario, costs);
  double of_microbatch = 0;
  for (const plan::LayerCost& layer : own.layers)
    of_microbatch +=
        own.busy_cores > 1 ? std::min(work(layer), work(layer.contended)) : work(layer);
  const std::vector<double> speeds = plan::cluster_of_ranks(scenario).rank_speeds;
  const double together =
      speeds.empty() ? scenario.pipeline.ranks : std::accumulate(speeds.begin(), speeds.end(), 0.0);
  return scenario.pipeline.microbatches * of_microbatch / together;
}

plan::Cut cut_of(const DraftPlan& plan) {
  plan::Cut cut = plan::cut_of(plan.draft.scenario);
  cut.stage_layers = layers_between(plan.boundaries);
  return cut;
}

std::string words_of(const DraftPlan& plan) {
  const plan::Scenario& scenario = plan.draft.scenario;
  const auto* const transformer = plan::transformer_of(scenario.model);
  const bool has_experts = transformer != nullptr && transformer->config.has_mixture();
  const std::string kinds = plan::kinds_words(scenario);
  return cut_words(cut_of(plan), plan.boundaries.back(), has_experts) +
         (kinds.empty() ? "" : ", ranks on " + kinds);
}

DraftAnswer search_drafts(const Draft& draft, const DraftSpace& space,
                          const DraftSearchOptions& options) {
  const auto started = SearchClock::now();
  require_axes(draft, space);
  if (space.devices > most_devices)
    throw plan::InputError(
        fmt::format("{} devices: at most {} are possible", space.devices, most_devices));
  const auto ask = [&](std::size_t decided, std::size_t candidates, const DraftCandidate*) {
    return !options.progress || options.progress(decided, candidates, nullptr);
  };
  const auto found = [&](bool exhaustive) {
    BalancedDrafts drafts(draft, space);
    const SearchAccount account =
        search(drafts,
               {.most_plans = options.most_plans,
                .exhaustive = exhaustive,
                .finds_nearest = false,  // with moved boundaries, another plan may be the nearest
                .progress = ask},
               started);
    return BoundarySearch(drafts, options, account, started).run();
  };
  DraftAnswer answer = found(/*exhaustive=*/false);
  // The plans that ruled out slower ones did not fit after all.
  if (answer.plans.empty() && answer.bounded > 0 && !answer.interrupted)
    answer = found(/*exhaustive=*/true);
  if (answer.candidates == 0)
    throw plan::InputError(
        fmt::format("nothing divides {} samples among {} devices: there is no plan to search",
                    draft.scenario.pipeline.replicas * draft.scenario.pipeline.microbatches *
                        draft.scenario.training.microbatch_size,
                    space.devices));
  return answer;
}

}  // namespace pipewright::search
