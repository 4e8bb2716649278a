#include "pipewright/search/planner/plan_search.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <tuple>

#include "layers_between.hpp"
#include "pipewright/models/transformer/transformer_costs.hpp"
#include "pipewright/models/transformer/transformer_memory.hpp"
#include "pipewright/plan/cluster/collective_times.hpp"
#include "pipewright/plan/cluster/even_memory.hpp"
#include "pipewright/plan/cluster/node_orders.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/model/transformer_layers.hpp"
#include "pipewright/search/calibration/run_costs.hpp"
#include "pipewright/search/planner/plan_files.hpp"
#include "pipewright/search/planner/plan_price.hpp"
#include "pipewright/search/planner/uneven_ranks.hpp"
#include "pipewright/sim/scenario/boundary_simulator.hpp"

namespace pipewright::search {
namespace {

using plan::Cut;

/// Rejects batches far above those of any training (the largest have about 1e8 tokens), such as a
/// batch that is given in tokens. Searching them would take minutes.
void require_usual_batch(const plan::TransformerTraining& training) {
  constexpr double most_tokens = 1e9;
  const double tokens = 1.0 * training.batch * training.sequence;
  if (tokens <= most_tokens)
    return;
  const int in_samples = training.batch / training.sequence;
  throw plan::InputError(fmt::format(
      "a batch of {} samples with {} tokens each has {:.3g} tokens, more than the {:.0g} that are "
      "planned. A batch is counted in samples, not in tokens{}",
      training.batch, training.sequence, tokens, most_tokens,
      in_samples > 0 ? fmt::format(": {} tokens are {} samples", training.batch, in_samples) : ""));
}

void require_sizes(const PlanSpace& space) {
  const plan::TransformerTraining& training = space.training;
  if (space.gpus < 1 || training.batch < 1 || training.sequence < 1 || training.model.layers < 1)
    throw plan::InputError("a plan needs a model, GPUs, a global batch and a sequence");
  require_usual_batch(training);
  plan::require_cut(training, Cut{});  // if one device cannot train it, no cut can
  for (const std::string& schedule : space.schedules)
    if (const auto& planned = models::planned_schedules();
        std::find(planned.begin(), planned.end(), schedule) == planned.end())
      throw plan::InputError(
          fmt::format("the planner does not support the schedule \"{}\"{}; it supports: {}",
                      schedule, plan::did_you_mean(schedule, planned), fmt::join(planned, ", ")));
}

/// Bounds count the parameters of layers by few of their sizes, which is slightly inexact.
constexpr double time_as_counted = 0.99, memory_as_counted = 0.96;
/// Tensors take at least this fraction of the bytes that the allocator reserves.
constexpr double most_fragmented = 0.85;
constexpr double no_limit = std::numeric_limits<double>::infinity();

PlanFacts facts_on(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                   const Cut& cut, sim::StructureCache* structures, double most_s) {
  plan::Scenario scenario = scenario_of(cluster, training, cut);
  scenario.cluster = with_unlimited_memory(scenario.cluster);  // the search checks the memory
  return facts_of(scenario, models::transformer_costs(scenario.cluster, training, cut), structures,
                  most_s);
}

/// A cut on a cluster whose nodes are filled in their given order.
struct PlacedCut {
  Cut cut;
  const plan::Cluster& cluster;
  const RankDevices& devices;
};

/// Cuts on all orders of the nodes. Among orders that give the ranks of a cut equal devices, only
/// the first counts.
class PlacedCuts {
 public:
  PlacedCuts(const plan::Cluster& cluster, const PlanSpace& space, models::PipelineShapes& shapes)
      : orders_(plan::node_orders(cluster, space.gpus)), known_(orders_.size()) {
    for (std::size_t order = 0; order < orders_.size(); ++order)
      for (Cut& cut : candidates_of(orders_[order].cluster, space, shapes))
        if (const RankDevices& devices = on(cut, order); is_first(cut, order, devices))
          all_.push_back({std::move(cut), orders_[order].cluster, devices});
  }
  PlacedCuts(const PlacedCuts&) = delete;
  PlacedCuts& operator=(const PlacedCuts&) = delete;

  std::size_t size() const { return all_.size(); }
  const PlacedCut& operator[](std::size_t candidate) const { return all_[candidate]; }

 private:
  using Axes = std::tuple<int, int, int, int>;

  const RankDevices& on(const Cut& cut, std::size_t order) {
    const auto [at, is_new] =
        known_[order].try_emplace(Axes{cut.pipeline, cut.data, cut.context, cut.tensor});
    if (is_new)
      at->second = rank_devices(orders_[order].cluster, cut);
    return at->second;
  }

  bool is_first(const Cut& cut, std::size_t order, const RankDevices& devices) {
    for (std::size_t before = 0; before < order; ++before)
      if (on(cut, before) == devices)
        return false;
    return true;
  }

  const std::vector<plan::NodeOrder> orders_;
  std::vector<std::map<Axes, RankDevices>> known_;  // by order
  std::vector<PlacedCut> all_;
};

/// The cuts of a training, as a Space for `search`.
class CutSpace {
 public:
  using Plan = FoundPlan;

  CutSpace(const plan::Cluster& cluster, const PlanSpace& space)
      : machine_(models::machine_of(cluster)),
        training_(space.training),
        bounded_(without_scores(space.training)),
        cuts_(cluster, space, shapes_),
        largest_(plan::largest_memory(cluster)) {}

  /// Returns the training without attention scores. The bytes of scores that are kept depend on
  /// their dropout, so a bound leaves them out.
  static plan::TransformerTraining without_scores(plan::TransformerTraining training) {
    training.attention = plan::AttentionKind::Fused;
    return training;
  }

  std::size_t size() const { return cuts_.size(); }
  double memory() const { return static_cast<double>(largest_.value); }
  bool fits(const FoundPlan& plan) const { return memory() <= 0 || plan.evened_bytes <= memory(); }

  /// Returns true for settings that most of the best plans have if they can.
  bool is_likely(std::size_t candidate) const {
    const Cut& cut = cuts_[candidate].cut;
    return cut.recompute != plan::RecomputeMode::Full &&
           cut.zero == (cut.data * cut.context > 1 ? 1 : 0) &&
           cut.sequence_parallel == (cut.tensor > 1);
  }

  /// Returns a bound of the peak. Full recomputation keeps only the inputs of layers, some of which
  /// are on the previous rank.
  double least_peak(std::size_t candidate) { return least_peak(cuts_[candidate]); }
  double least_peak(const PlacedCut& placed) {
    const Cut& cut = placed.cut;
    const plan::Bytes beside = models::gpu_memory({}, cut, {}).total();
    std::vector<plan::Bytes> held;
    for (const models::RankMemory& rank :
         models::transformer_memory(bounded_, cut, shape_of(cut))) {
      const double kept = cut.recompute == plan::RecomputeMode::Full ? 0 : rank.kept;
      held.push_back(beside + plan::whole_bytes(memory_as_counted * (rank.standing + kept)));
    }
    return evened(held, placed.devices);
  }

  double least_s(std::size_t candidate) { return least_s(cuts_[candidate]); }
  double least_s(const PlacedCut& placed) {
    const Cut& cut = placed.cut;
    const models::PipelineShape& shape = shape_of(cut);
    models::TransformerWork work = models::transformer_work(placed.cluster, training_, cut);
    if (cut.overlaps_gradients)  // the Program decides how much of the reductions overlaps
      forget_sums(work);
    const models::TransformerTimes times =
        priced(work, machine_, models::layer_class_of(training_, cut));
    set_step_costs(costs_, placed.cluster, training_.model, cut, times);
    lower_ends(cut);
    divide_by(placed.devices.speeds, shape);
    double least = cut.zero < 2 ? least_iteration(costs_, shape, microbatches(cut))
                                : least_of_microbatch_sums(cut, shape, work);
    // With full recomputation, one layer may be recomputed while its gradient is being transferred.
    if (cut.recompute == plan::RecomputeMode::Full)
      for (const double speed : placed.devices.speeds)
        least -= std::max(times.layer.forward, times.dense_layer.forward) / speed;
    return time_as_counted * least;
  }

  /// Returns the figures that a simulation of the plan's scenario gives.
  FoundPlan price(const Bound& bound, double most_s) {
    const PlacedCut& placed = cuts_[bound.candidate];
    require_timed(placed.cut);
    FoundPlan plan{.cut = placed.cut,
                   .cluster = placed.cluster,
                   .least_s = bound.least_s,
                   .least_bytes = bound.peak_bytes};
    set_facts(plan, placed, most_s);
    return plan;
  }

  /// Returns a bound from the peak bytes of tensors; 0 if they cannot be replayed.
  double least_need(std::size_t candidate) const {
    const PlacedCut& placed = cuts_[candidate];
    try {
      return evened(on_gpus(models::allocated_by_rank(training_, placed.cut), placed.cut),
                    placed.devices);
    } catch (const plan::InputError&) {
      return 0;
    }
  }

  void weigh(FoundPlan& plan) {
    plan.peaks = needs_of(plan.cut, plan.held, rank_devices(plan.cluster, plan.cut));
    set_peaks(plan);
  }

  /// Sets each part of the memory by its name, unless the fullest rank alone needs `most_bytes`.
  void weigh_whole(FoundPlan& plan, double most_bytes = no_limit) {
    if (most_bytes < no_limit) {
      plan.peaks = allocated_needs(plan.cut, plan.held);
      reserve_on_fullest(plan.peaks, plan.cut);
      set_peaks(plan);
      if (figures_of(plan).peak_bytes >= most_bytes)
        return;
    }
    plan.memory = memory_of(plan.cut, plan.held);
    plan.peaks = totals_of(plan.memory);
    set_peaks(plan);
  }

  /// Moves the boundaries of the plan's stages until no move is faster within the memory. Returns
  /// the number of simulated partitions: those whose bound is below the best so far.
  int move_borders(FoundPlan& plan) {
    const plan::Scenario scenario = scenario_of(plan.cluster, training_, plan.cut);
    const auto costs = models::transformer_costs(scenario.cluster, training_, plan.cut);
    sim::BoundarySimulator simulator(scenario, costs, structures_);
    const RankDevices devices = rank_devices(plan.cluster, plan.cut);
    PlacedCut placed{plan.cut, plan.cluster, devices};
    double best_s = plan.iteration_s;
    int simulated = 0;
    const auto need_of = [&](const std::vector<int>& borders) -> sim::PartitionNeed {
      placed.cut.stage_layers = layers_between(borders);
      if (const double least = least_s(placed); least > best_s)
        return {{least}, {}};
      ++simulated;
      sim::PartitionNeed need = simulator.need(with_ends(borders), best_s);
      if (largest_ > plan::Bytes{} && need.iteration.value <= best_s) {
        const std::vector every_rank(static_cast<std::size_t>(placed.cut.pipeline), need.peak);
        need.peak = plan::whole_bytes(evened(needs_of(placed.cut, every_rank, devices), devices));
      }
      if (largest_ == plan::Bytes{} || need.peak <= largest_)
        best_s = std::min(best_s, need.iteration.value);
      return need;
    };
    const sim::FastestPartition fastest =
        sim::fastest_partition(training_.model.layers, borders_of(plan.cut), need_of,
                               largest_ > plan::Bytes{} ? std::optional(largest_) : std::nullopt);
    plan.cut.stage_layers = placed.cut.stage_layers = layers_between(fastest.partition.boundaries);
    plan.least_s = least_s(placed);
    plan.least_bytes = least_peak(placed);
    set_facts(plan, placed, no_limit);
    weigh(plan);
    return simulated;
  }

 private:
  /// Throws InputError if the cut has more passes than can be timed.
  void require_timed(const Cut& cut) const {
    if (1.0 * cut.stages() * microbatches(cut) > models::most_timed_passes)
      throw plan::InputError(
          fmt::format("{} microbatches on {} stages are more than the {} passes that can be timed",
                      microbatches(cut), cut.stages(), models::most_timed_passes));
  }

  /// Returns the boundaries between the model's layers.
  std::vector<int> borders_of(const Cut& cut) const {
    std::vector<int> borders{0};
    for (int stage = 0; stage < cut.stages(); ++stage)
      borders.push_back(borders.back() + cut.layers_of(stage, training_.model.layers));
    return borders;
  }

  /// Returns the same boundaries if the embedding counts as a layer before these, and the head as
  /// one after them.
  static std::vector<int> with_ends(std::vector<int> borders) {
    for (std::size_t at = 1; at < borders.size(); ++at)
      borders[at] += at + 1 == borders.size() ? 2 : 1;
    return borders;
  }

  double evened(const std::vector<plan::Bytes>& held, const RankDevices& devices) const {
    return static_cast<double>(plan::normalized_peak(held, devices.memory, largest_).value);
  }

  /// Divides the times by the ranks' speeds. Collectives are not faster on a faster rank, so the
  /// end of an iteration is scaled only if that makes it shorter.
  void divide_by(const std::vector<double>& speeds, const models::PipelineShape& shape) {
    for (std::size_t rank = 0; rank < speeds.size(); ++rank)
      for (const int at : shape.stages_of_rank[rank]) {
        plan::StageCost& stage = costs_.stages[static_cast<std::size_t>(at)];
        const double slower = 1 / speeds[rank];
        stage.forward = stage.forward * slower;
        stage.input_gradient = stage.input_gradient * slower;
        stage.weight_gradient = stage.weight_gradient * slower;
        stage.optimizer_step = stage.optimizer_step * std::min(1.0, slower);
      }
  }

  static void forget_sums(models::TransformerWork& work) {
    for (models::StageEndWork* const end :
         {&work.first_end, &work.middle_end, &work.last_end, &work.only_end})
      end->sum = {};
  }

  /// Scales down the end of the iteration of middle stages. It is priced for the largest of them;
  /// stages with fewer layers take less.
  void lower_ends(const Cut& cut) {
    if (cut.stage_layers.size() < 3)
      return;
    const auto begin = cut.stage_layers.begin() + 1, end = cut.stage_layers.end() - 1;
    const double most = *std::max_element(begin, end);
    for (auto layers = begin; layers != end; ++layers) {
      auto& step = costs_.stages[static_cast<std::size_t>(layers - cut.stage_layers.begin())];
      step.optimizer_step = step.optimizer_step * (*layers / most);
    }
  }

  void set_facts(FoundPlan& plan, const PlacedCut& placed, double most_s) {
    const PlanFacts facts = facts_on(placed.cluster, training_, placed.cut, &structures_, most_s);
    plan.iteration_s = facts.iteration_s;
    plan.held = plan.peaks = facts.peaks;
    plan.memory.clear();
    set_peaks(plan);
    plan.bubble = facts.bubble;
    plan.tokens_per_s = facts.units_per_s;
    plan.mfu = facts.mfu;
  }

  void set_peaks(FoundPlan& plan) const {
    const plan::Bytes peak =
        plan.peaks.empty() ? plan::Bytes{} : *std::ranges::max_element(plan.peaks);
    plan.peak_bytes = static_cast<double>(peak.value);
    plan.evened_bytes = evened(plan.peaks, rank_devices(plan.cluster, plan.cut));
  }

  /// Returns the bytes that GPUs need, by rank, from the peak of their tensors. If that is close to
  /// the limit, the fullest rank is replayed with the allocator.
  std::vector<plan::Bytes> needs_of(const Cut& cut, const std::vector<plan::Bytes>& held,
                                    const RankDevices& devices) const {
    std::vector<plan::Bytes> needs = allocated_needs(cut, held);
    const double most = evened(needs, devices);
    if (most <= memory() && most > most_fragmented * memory())
      reserve_on_fullest(needs, cut);
    return needs;
  }

  /// Returns the needs by rank; `held` is used if nothing can be replayed.
  std::vector<plan::Bytes> allocated_needs(const Cut& cut,
                                           const std::vector<plan::Bytes>& held) const {
    try {
      return on_gpus(models::allocated_by_rank(training_, cut), cut);
    } catch (const plan::InputError&) {
      return on_gpus(held, cut);
    }
  }

  static std::vector<plan::Bytes> on_gpus(std::vector<plan::Bytes> allocated, const Cut& cut) {
    for (plan::Bytes& rank : allocated)
      rank = models::gpu_memory(rank, cut, {}).total();
    return allocated;
  }

  void reserve_on_fullest(std::vector<plan::Bytes>& needs, const Cut& cut) const {
    const auto fullest = std::ranges::max_element(needs);
    try {
      const auto rank = static_cast<int>(fullest - needs.begin());
      const models::AllocatorCounters replayed =
          models::replay_training(training_, cut, {.rank = rank});
      *fullest = models::gpu_memory({replayed.peak_reserved}, cut, {}).total();
    } catch (const plan::InputError&) {
      return;  // only the tensors' peak is known
    }
  }

  std::vector<models::DeviceMemory> memory_of(const Cut& cut,
                                              const std::vector<plan::Bytes>& held) const {
    std::vector<models::DeviceMemory> ranks;
    try {
      ranks = models::replayed_memory(training_, cut);
    } catch (const plan::InputError& error) {
      for (const plan::Bytes own : held)
        ranks.push_back(models::gpu_memory(own, cut, error.what()));
    }
    return ranks;
  }

  double gather_s(const models::TransformerWork& work, const models::StageEndWork& end) const {
    return models::gathering_s(work, end, machine_.constants);
  }
  double scatter_s(const models::StageEndWork& end) const {
    return models::scattering_s(end, machine_.constants);
  }

  /// Returns the bound for ZeRO 2 and 3. They reduce each microbatch's gradients, overlapped with
  /// compute: after the last microbatch a rank waits for the reduction of at least one of its
  /// stages, and before the first for its parameters.
  double least_of_microbatch_sums(const Cut& cut, const models::PipelineShape& shape,
                                  const models::TransformerWork& work) {
    const bool gathers = cut.zero == 3;  // before each use, not after the step
    for (const std::vector<int>& stages : shape.stages_of_rank) {
      double least = std::numeric_limits<double>::infinity();
      for (const int stage : stages) {
        plan::Seconds& end = costs_.stages[static_cast<std::size_t>(stage)].optimizer_step;
        least =
            std::min(least, end.value - (gathers ? gather_s(work, end_of(stage, cut, work)) : 0));
        end = {};
      }
      costs_.stages[static_cast<std::size_t>(stages.front())].optimizer_step = {least};
    }
    return std::max(least_iteration(costs_, shape, microbatches(cut)) +
                        (gathers ? gather_s(work, end_of(0, cut, work)) : 0),
                    microbatches(cut) * scatters_s(cut, shape, work));
  }

  static const models::StageEndWork& end_of(int stage, const Cut& cut,
                                            const models::TransformerWork& work) {
    const int last = cut.stages() - 1;
    return last == 0       ? work.only_end
           : stage == 0    ? work.first_end
           : stage == last ? work.last_end
                           : work.middle_end;
  }

  /// Returns the seconds of a microbatch's reduce-scatters on the rank where they take longest: its
  /// stages' gradients, one after another. Those of a middle stage are at most as long as counted.
  double scatters_s(const Cut& cut, const models::PipelineShape& shape,
                    const models::TransformerWork& work) const {
    const int last = cut.stages() - 1, layers = training_.model.layers;
    int most_of_middle = 1;
    for (int stage = 1; stage < last; ++stage)
      most_of_middle = std::max(most_of_middle, cut.layers_of(stage, layers));
    const double first = scatter_s(end_of(0, cut, work)), end = scatter_s(end_of(last, cut, work));
    const double middle = scatter_s(work.middle_end) / most_of_middle;
    double most = 0;
    for (const std::vector<int>& stages : shape.stages_of_rank) {
      double seconds = 0;
      for (const int stage : stages)
        seconds += stage == 0 ? first : stage == last ? end : middle * cut.layers_of(stage, layers);
      most = std::max(most, seconds);
    }
    return most;
  }

  int microbatches(const Cut& cut) const { return cut.microbatches(training_.batch); }
  const models::PipelineShape& shape_of(const Cut& cut) {
    return *shapes_.find(cut, training_.batch);
  }

  const plan::Machine machine_;
  const plan::TransformerTraining& training_;
  const plan::TransformerTraining bounded_;
  models::PipelineShapes shapes_;
  PlacedCuts cuts_;
  const plan::Bytes largest_;
  sim::StructureCache structures_;
  sim::StepCosts costs_;  // of the cut being bounded
};

/// Returns a sample of the machine's constants by their uncertainty.
plan::MachineConstants drawn(const plan::Machine& machine, std::mt19937_64& random) {
  // The sum of twelve uniform numbers is nearly normal, and the same on every machine.
  const auto normal = [&] {
    double sum = -6;
    for (int part = 0; part < 12; ++part)
      sum += static_cast<double>(random() >> 11U) * 0x1.0p-53;
    return sum;
  };
  plan::MachineConstants constants = machine.constants;
  for (const plan::ConstantRule& rule : plan::constant_rules()) {
    double& value = constants.*rule.member;
    value =
        std::clamp(value * std::exp(machine.spread.*rule.member * normal()), rule.least, rule.most);
  }
  return constants;
}

}  // namespace

PlanFigures figures_of(const FoundPlan& plan) { return {plan.iteration_s, plan.evened_bytes}; }

Regret regret_of(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                 const std::vector<FoundPlan>& plans, int draws) {
  if (constexpr int most = 100'000; draws > most)
    throw plan::InputError(fmt::format("{} draws: at most {} are possible", draws, most));
  const plan::Machine known = models::machine_of(cluster);
  std::mt19937_64 random(1);
  sim::StructureCache structures;
  Regret regret;
  for (int draw = 0; draw < draws; ++draw) {
    plan::Machine guess = known;
    guess.constants = drawn(known, random);
    double best = std::numeric_limits<double>::infinity(), first = 0;
    for (std::size_t at = 0; at < plans.size(); ++at) {
      plan::Cluster guessed = plans[at].cluster;
      guessed.machine = guess;
      const double time =
          facts_on(guessed, training, plans[at].cut, &structures, /*most_s=*/0).iteration_s;
      first = at == 0 ? time : first;
      best = std::min(best, time);
    }
    regret.mean += (first / best - 1) / draws;
    regret.best_share += (first <= best ? 1.0 : 0.0) / draws;
  }
  return regret;
}

namespace {

/// Throws unless the cluster's lists by rank fit a pipeline size of the space.
void require_ranks(const plan::Cluster& cluster, const PlanSpace& space) {
  const auto require = [&](const char* field, std::size_t ranks) {
    const auto wanted = static_cast<int>(ranks);
    const bool is_asked =
        space.pipeline.empty() || std::ranges::find(space.pipeline, wanted) != space.pipeline.end();
    if (wanted > 0 && (space.gpus % wanted != 0 || !is_asked))
      throw plan::InputError(
          fmt::format("the cluster's {} is for pipelines of {} ranks, but {}", field, wanted,
                      is_asked ? fmt::format("{} GPUs cannot form one", space.gpus)
                               : "no such pipeline size is searched"));
  };
  require("rank_speeds", cluster.rank_speeds.size());
  require("rank_memory_bytes", cluster.rank_memory.size());
}

// The number of fastest plans whose boundaries are moved, unless more are wanted.
constexpr int least_moved = 10;

/// Replaces the plans by those with moved boundaries, each once. Returns false if a plan does not
/// fit and is removed.
bool move_borders(CutSpace& cuts, PlanAnswer& answer, const SearchOptions<FoundPlan>& options) {
  BestPlans<FoundPlan> best(options.most_plans, options.pareto);
  std::vector<std::pair<plan::Cluster, Cut>> known;
  bool all_fit = true;
  for (const FoundPlan& start : answer.plans) {
    FoundPlan plan = start;
    if (!answer.interrupted) {
      answer.simulated += static_cast<std::size_t>(cuts.move_borders(plan));
      answer.interrupted =
          options.progress && !options.progress(answer.candidates, answer.candidates, &plan);
    }
    cuts.weigh_whole(plan);
    if (!cuts.fits(plan)) {  // the allocator reserves more than the moves counted
      plan = start;
      cuts.weigh_whole(plan);
    }
    std::pair own{plan.cluster, plan.cut};
    if (std::ranges::find(known, own) != known.end())
      continue;
    known.push_back(std::move(own));
    if (cuts.fits(plan))
      best.add(std::move(plan));
    else
      all_fit = false;
  }
  answer.plans = best.take();
  if (answer.nearest && !answer.plans.empty() &&
      answer.plans.front().iteration_s <= answer.nearest->iteration_s)
    answer.nearest.reset();
  return all_fit;
}

/// The number of spare plans. Each plan is checked by the memory that the allocator reserves, which
/// rarely exceeds the estimate; plans that do not fit are removed.
constexpr int to_spare = 2;
bool weigh_all(CutSpace& cuts, PlanAnswer& answer, const SearchOptions<FoundPlan>& options) {
  BestPlans<FoundPlan> best(options.most_plans, options.pareto);
  bool all_fit = true;
  for (FoundPlan& plan : answer.plans) {
    if (plan.memory.empty())
      cuts.weigh_whole(plan);
    if (cuts.fits(plan))
      best.add(std::move(plan));
    else
      --answer.simulated, ++answer.too_large, all_fit = false;
  }
  answer.plans = best.take();
  return all_fit;
}

bool moves_borders(const plan::Cluster& cluster, const PlanSpace& space) {
  const std::vector<StageSizes> sizes = with_defaults(space).stage_sizes;
  return has_uneven_ranks(cluster) && std::ranges::find(sizes, StageSizes::Balanced) != sizes.end();
}

}  // namespace

PlanAnswer search_plans(const plan::Cluster& cluster, const PlanSpace& space,
                        const SearchOptions<FoundPlan>& options) {
  const auto started = SearchClock::now();
  require_sizes(space);
  models::require_figures(cluster);
  require_nodes(cluster, space.gpus, "the training");
  require_ranks(cluster, space);
  CutSpace cuts(cluster, space);
  const bool moves = moves_borders(cluster, space);
  SearchOptions<FoundPlan> wider = options;
  wider.most_plans =
      moves ? std::max(least_moved, options.most_plans)
            : std::min(options.most_plans, std::numeric_limits<int>::max() - to_spare) + to_spare;
  const auto found = [&](PlanAnswer& answer) {
    answer = search(cuts, wider, started);
    const bool moved_fit = !moves || move_borders(cuts, answer, options);
    return weigh_all(cuts, answer, options) && moved_fit;
  };
  PlanAnswer answer;
  if (const bool all_fit = found(answer);
      !all_fit && !options.pareto && !answer.interrupted &&
      answer.plans.size() < static_cast<std::size_t>(options.most_plans)) {
    wider.weighs_whole = true;  // those that were ruled out by the removed plans may fit
    found(answer);
  }
  answer.seconds = std::chrono::duration<double>(SearchClock::now() - started).count();
  return answer;
}

void require_candidates(const PlanSpace& space, const PlanAnswer& answer) {
  const plan::TransformerTraining& training = space.training;
  if (answer.candidates == 0)
    throw plan::InputError(fmt::format(
        "nothing divides a batch of {} among {} GPUs for {} layers and {} heads: there is no plan "
        "to search",
        training.batch, space.gpus, training.model.layers, training.model.heads));
}

}  // namespace pipewright::search
