#include "pipewright/sim/planner/plan_search.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "pipewright/plan/cluster/collective_times.hpp"
#include "pipewright/plan/error.hpp"
#include "pipewright/plan/model/transformer_layers.hpp"
#include "pipewright/plan/transformer/transformer_costs.hpp"
#include "pipewright/plan/transformer/transformer_memory.hpp"
#include "pipewright/sim/calibration/run_costs.hpp"
#include "pipewright/sim/planner/plan_files.hpp"
#include "pipewright/sim/planner/plan_price.hpp"

namespace pipewright::sim {
namespace {

using plan::Cut;

void require_sizes(const PlanSpace& space) {
  const plan::TransformerTraining& training = space.training;
  if (space.gpus < 1 || training.batch < 1 || training.sequence < 1 || training.model.layers < 1)
    throw plan::InputError("a plan needs a model, GPUs, a global batch and a sequence");
  plan::require_cut(training, Cut{});  // what one device cannot train, none of the cuts can
  for (const std::string& schedule : space.schedules)
    if (const auto& planned = plan::planned_schedules();
        std::find(planned.begin(), planned.end(), schedule) == planned.end())
      throw plan::InputError(fmt::format("no plan has the schedule \"{}\"{}; these have: {}",
                                         schedule, plan::did_you_mean(schedule, planned),
                                         fmt::join(planned, ", ")));
}

/// Bounds count the parameters of layers by few of their sizes, which is a little more or less than
/// they have.
constexpr double time_as_counted = 0.99, memory_as_counted = 0.96;

PlanFacts facts_on(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                   const Cut& cut, StructureCache* structures, double most_s) {
  plan::Scenario scenario = scenario_of(cluster, training, cut);
  scenario.cluster = roomy(scenario.cluster);  // the search minds the memory
  return facts_of(scenario, plan::transformer_costs(scenario.cluster, training, cut), structures,
                  most_s);
}

/// The cuts of a training, as `search` goes over them.
class CutSpace {
 public:
  using Plan = FoundPlan;

  CutSpace(const plan::Cluster& cluster, const PlanSpace& space)
      : cluster_(cluster),
        machine_(machine_of(cluster)),
        training_(space.training),
        cuts_(candidates_of(cluster, space, shapes_)) {}

  std::size_t size() const { return cuts_.size(); }
  double memory() const { return static_cast<double>(plan::least_memory(cluster_).value); }

  /// What most of the best plans do where they can.
  bool is_likely(std::size_t candidate) const {
    const Cut& cut = cuts_[candidate];
    return cut.recompute != plan::RecomputeMode::Full &&
           cut.zero == (cut.data * cut.context > 1 ? 1 : 0) &&
           cut.sequence_parallel == (cut.tensor > 1);
  }

  /// What runs again keeps the inputs of layers alone, some of which lie on the rank before.
  double least_peak(std::size_t candidate) {
    const Cut& cut = cuts_[candidate];
    auto ranks = plan::transformer_memory(training_, cut, shape_of(cut));
    if (cut.recompute == plan::RecomputeMode::Full)
      for (plan::RankMemory& rank : ranks)
        rank.kept = 0;
    return memory_as_counted * plan::peak_of(ranks, machine_.constants);
  }

  double least_s(std::size_t candidate) {
    const Cut& cut = cuts_[candidate];
    const plan::PipelineShape& shape = shape_of(cut);
    plan::TransformerWork work = plan::transformer_work(cluster_, training_, cut);
    if (cut.overlaps_gradients)  // how much of the sums is hidden, the Program says
      forget_sums(work);
    const plan::TransformerTimes times =
        priced(work, machine_, plan::layer_class_of(training_, cut));
    set_step_costs(costs_, cluster_, training_.model, cut, times);
    lower_ends(cut);
    double least = cut.zero < 2 ? least_iteration(costs_, shape, microbatches(cut))
                                : least_of_microbatch_sums(cut, shape, work);
    // Of a microbatch that runs again, one layer may do so while its gradient is on its way.
    if (cut.recompute == plan::RecomputeMode::Full)
      least -= cut.pipeline * std::max(times.layer.forward, times.dense_layer.forward);
    return time_as_counted * least;
  }

  /// What whoever simulates the plan's scenario gets.
  std::optional<FoundPlan> price(const Bound& bound, double most_s) {
    const Cut& cut = cuts_[bound.candidate];
    try {
      return found(bound, facts_on(cluster_, training_, cut, &structures_, most_s));
    } catch (const plan::InputError&) {
      return {};
    } catch (const plan::Infeasible&) {
      return {};
    }
  }

 private:
  static void forget_sums(plan::TransformerWork& work) {
    for (plan::StageEndWork* const end :
         {&work.first_end, &work.middle_end, &work.last_end, &work.only_end})
      end->sum = {};
  }

  /// The end of a stage in the middle is priced by the most layers that one there has; those with
  /// fewer take less.
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

  FoundPlan found(const Bound& bound, const PlanFacts& facts) const {
    plan::Bytes peak{};
    for (const plan::Bytes of_rank : facts.peaks)
      peak = std::max(peak, of_rank);
    return {.cut = cuts_[bound.candidate],
            .iteration_s = facts.iteration_s,
            .least_s = bound.least_s,
            .least_bytes = bound.peak_bytes,
            .peaks = facts.peaks,
            .peak_bytes = static_cast<double>(peak.value),
            .bubble = facts.bubble,
            .tokens_per_s = facts.units_per_s,
            .mfu = facts.mfu};
  }

  double gather_s(const plan::TransformerWork& work, const plan::StageEndWork& end) const {
    return plan::gathering_s(work, end, machine_.constants);
  }
  double scatter_s(const plan::StageEndWork& end) const {
    return plan::scattering_s(end, machine_.constants);
  }

  /// ZeRO 2 and 3 sum what each microbatch makes, beside compute: behind the last, a rank waits for
  /// one of its stages at least, and before the first for its parameters.
  double least_of_microbatch_sums(const Cut& cut, const plan::PipelineShape& shape,
                                  const plan::TransformerWork& work) {
    const bool gathers = cut.zero == 3;  // before each use, not behind the step
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

  static const plan::StageEndWork& end_of(int stage, const Cut& cut,
                                          const plan::TransformerWork& work) {
    const int last = cut.stages() - 1;
    return last == 0       ? work.only_end
           : stage == 0    ? work.first_end
           : stage == last ? work.last_end
                           : work.middle_end;
  }

  /// Of a microbatch, on the rank where it is most: its stages' gradients, one after another. Those
  /// of a stage in the middle are at most as many as counted.
  double scatters_s(const Cut& cut, const plan::PipelineShape& shape,
                    const plan::TransformerWork& work) const {
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
  const plan::PipelineShape& shape_of(const Cut& cut) {
    return *shapes_.find(cut, training_.batch);
  }

  const plan::Cluster& cluster_;
  const plan::Machine machine_;
  const plan::TransformerTraining& training_;
  plan::PipelineShapes shapes_;
  const std::vector<Cut> cuts_;
  StructureCache structures_;
  StepCosts costs_;  // of the cut that is bounded
};

/// A machine whose constants err as much as they are unsure.
plan::MachineConstants drawn(const plan::Machine& machine, std::mt19937_64& random) {
  // Twelve uniform numbers add up to a normal one on every machine alike.
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

Regret regret_of(const plan::Cluster& cluster, const plan::TransformerTraining& training,
                 const std::vector<FoundPlan>& plans, int draws) {
  const plan::Machine known = machine_of(cluster);
  std::mt19937_64 random(1);
  StructureCache structures;
  Regret regret;
  for (int draw = 0; draw < draws; ++draw) {
    plan::Cluster guess = cluster;
    guess.machine = known;
    guess.machine->constants = drawn(known, random);
    double best = std::numeric_limits<double>::infinity(), first = 0;
    for (std::size_t at = 0; at < plans.size(); ++at) {
      const double time =
          facts_on(guess, training, plans[at].cut, &structures, /*most_s=*/0).iteration_s;
      first = at == 0 ? time : first;
      best = std::min(best, time);
    }
    regret.mean += (first / best - 1) / draws;
    regret.best_share += (first <= best ? 1.0 : 0.0) / draws;
  }
  return regret;
}

PlanAnswer search_plans(const plan::Cluster& cluster, const PlanSpace& space,
                        const SearchOptions<FoundPlan>& options) {
  const auto started = SearchClock::now();
  require_sizes(space);
  require_figures(cluster);
  require_nodes(cluster, space.gpus, "the training");
  CutSpace cuts(cluster, space);
  return search(cuts, options, started);
}

void require_candidates(const PlanSpace& space, const PlanAnswer& answer) {
  const plan::TransformerTraining& training = space.training;
  if (answer.candidates == 0)
    throw plan::InputError(fmt::format(
        "nothing divides a batch of {} among {} GPUs for {} layers and {} heads: no plan to look "
        "at",
        training.batch, space.gpus, training.model.layers, training.model.heads));
}

}  // namespace pipewright::sim
