#include "pipewright/loop/draft_search.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/generators/schedule_catalogue.hpp"
#include "pipewright/plan/program/gradient_groups.hpp"
#include "pipewright/sim/engine/simulator.hpp"
#include "pipewright/sim/scenario/fastest_partition.hpp"

namespace pipewright::loop {
namespace {

// Larger jobs do not leave a fourth of their devices.
constexpr int small_job = 16;
// Borders are searched for so many of the quickest with balanced stages: these at least, or so many
// for each plan that is wanted.
constexpr std::size_t least_refined = 20;
constexpr std::size_t refined_for_each = 2;

std::vector<int> up_to(int most) {
  std::vector<int> numbers(static_cast<std::size_t>(std::max(0, most)));
  std::iota(numbers.begin(), numbers.end(), 1);
  return numbers;
}

template <class Value>
std::vector<Value> asked_or(const std::vector<Value>& asked, std::vector<Value> otherwise) {
  return asked.empty() ? std::move(otherwise) : asked;
}

std::vector<std::string> usual_schedules() {
  std::vector<std::string> names;
  for (const plan::ScheduleDescriptor& schedule : plan::schedules())
    if (schedule.trains_batch() && !schedule.orders_by_times)
      names.push_back(schedule.name);
  return names;
}

void require_searchable(const DraftSpace& space) {
  for (const std::string& name : space.schedules)
    if (!plan::find_schedule(name).trains_batch())
      throw plan::InputError(fmt::format(
          "{} is no schedule to choose: it does not train the batch in one step; these do: {}",
          name, plan::listed_schedules(&plan::ScheduleDescriptor::trains_batch)));
  if (const auto most = std::max_element(space.ranks.begin(), space.ranks.end());
      space.devices > 0 && most != space.ranks.end() && *most > space.devices)
    throw plan::InputError(
        fmt::format("{} ranks are asked for, and there are {} devices", *most, space.devices));
}

/// A candidate, with stages that balance the layers.
struct DraftCandidate {
  plan::Scenario scenario;
  std::vector<int> devices;
  // Once it is simulated.
  double iteration_s = 0;
  plan::Bytes peak{};
};

sim::PlanFigures figures_of(const DraftCandidate& candidate) {
  return {candidate.iteration_s, static_cast<double>(candidate.peak.value)};
}

/// Between what a search of a draft chooses: all candidates, one after the other.
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
    const int layers = static_cast<int>(model_of(base_).layers.size());
    for (const int ranks : asked_or(space_.ranks, up_to(std::min(devices_, layers))))
      for (const int replicas : up_to(devices_ / std::max(1, ranks)))
        if (uses_enough(ranks * replicas) && (!space_.keeps_bits || groups_ % replicas == 0))
          with_ranks(ranks, replicas, layers);
    return std::move(found_);
  }

 private:
  bool uses_enough(int used) const { return devices_ <= small_job || 4 * used > 3 * devices_; }

  void with_ranks(int ranks, int replicas, int layers) {
    const plan::Training& training = base_.training;
    const std::vector<int> own{training.microbatch_size};
    for (const int microbatch : space_.keeps_bits ? own : asked_or(space_.microbatch, own)) {
      if (samples_ % (replicas * microbatch) != 0)
        continue;
      plan::Scenario scenario = base_;
      scenario.cluster.device.memory = least_memory(base_.cluster);  // any rank may be any device
      scenario.cluster.rank_memory.clear();
      scenario.cluster.mixture.reset();
      scenario.pipeline.ranks = ranks;
      scenario.pipeline.replicas = replicas;
      scenario.pipeline.microbatches = samples_ / (replicas * microbatch);
      scenario.pipeline.partition = "profile";
      scenario.training.microbatch_size = microbatch;
      scenario.training.microbatch_lengths.clear();
      if (space_.keeps_bits)
        scenario.training.gradient_groups = groups_;
      const std::vector<int> devices = put_on_fastest(scenario);
      for (const std::string& schedule : asked_or(space_.schedules, usual_schedules()))
        for (const int chunks :
             asked_or(space_.chunks, plan::usual_chunks(plan::find_schedule(schedule).chunks)))
          if (ranks * chunks <= layers && (ranks > 1 || schedule == "1f1b")) {
            plan::choose_schedule(scenario.pipeline, schedule);
            scenario.pipeline.chunks = chunks;
            with_memory({.scenario = scenario, .devices = devices});
          }
    }
  }

  void with_memory(DraftCandidate candidate) {
    const plan::Training& training = base_.training;
    for (const auto recompute : asked_or(space_.recompute, {training.recompute}))
      for (const int zero : asked_or(space_.zero, {training.zero})) {
        if (zero > 0 && candidate.scenario.pipeline.replicas == 1 && training.zero == 0)
          continue;
        candidate.scenario.training.recompute = recompute;
        candidate.scenario.training.zero = zero;
        found_.push_back(candidate);
      }
  }

  /// In their order. A rank's replicas wait for the slowest of them.
  std::vector<int> put_on_fastest(plan::Scenario& scenario) const {
    const auto ranks = static_cast<std::size_t>(scenario.pipeline.ranks);
    const auto replicas = static_cast<std::size_t>(scenario.pipeline.replicas);
    std::vector<int> devices(speeds_.size());
    std::iota(devices.begin(), devices.end(), 0);
    std::stable_sort(devices.begin(), devices.end(), [&](int a, int b) {
      return speeds_[static_cast<std::size_t>(a)] > speeds_[static_cast<std::size_t>(b)];
    });
    devices.resize(ranks * replicas);
    std::sort(devices.begin(), devices.end());
    auto& by_rank = scenario.cluster.rank_speeds;
    by_rank.assign(ranks, std::numeric_limits<double>::infinity());
    for (std::size_t at = 0; at < devices.size(); ++at)
      by_rank[at / replicas] =
          std::min(by_rank[at / replicas], speeds_[static_cast<std::size_t>(devices[at])]);
    if (std::all_of(by_rank.begin(), by_rank.end(), [](double speed) { return speed == 1; }))
      by_rank.clear();
    return devices;
  }

  const plan::Scenario& base_;
  const DraftSpace& space_;
  std::vector<double> speeds_;
  int devices_ = 0, samples_ = 0, groups_ = 1;
  std::vector<DraftCandidate> found_;
};

/// A candidate's simulator, for whatever borders.
class BorderSimulator {
 public:
  BorderSimulator(const plan::Scenario& scenario, const plan::LayerCosts& costs,
                  sim::StructureCache& structures)
      : scenario_(scenario),
        costs_(costs),
        plan_(sim::lay_out(roomy(scenario), costs_, &structures)),
        simulator_(*plan_.structure),
        memory_(*plan_.structure, sim::holding_of(scenario_, plan_.program())) {
    require_usable(plan_.costs, plan_.program());
    if (const int groups = scenario_.training.gradient_groups; groups > 0)
      plan::require_whole_groups(plan_.program(), scenario_.pipeline.replicas, groups);
  }

  /// The borders that balance the layers.
  const std::vector<int>& boundaries() const { return plan_.partition.boundaries; }
  sim::PartitionNeed need(const std::vector<int>& boundaries) {
    const auto costs = sim::step_costs_of(scenario_, costs_, {boundaries});
    const sim::Times& times = simulator_.run_shared(costs);
    return {{times.iteration}, memory_.curves(costs, times).highest_peak()};
  }
  int layers() const { return static_cast<int>(costs_.layers.size()); }

 private:
  /// What is too large is to be measured, not refused; but some schedules fit themselves to it.
  static plan::Scenario roomy(plan::Scenario scenario) {
    if (!plan::descriptor_of(scenario.pipeline.schedule).takes_memory_units)
      scenario.cluster = plan::roomy(scenario.cluster);
    return scenario;
  }

  const plan::Scenario& scenario_;
  const plan::LayerCosts& costs_;
  const sim::ScenarioPlan plan_;
  sim::Simulator simulator_;
  sim::MemoryModel memory_;
};

/// The candidates of a draft with stages that balance the layers, as `sim::search` goes over them.
/// It keeps all that were simulated.
class BalancedDrafts {
 public:
  using Plan = DraftCandidate;

  BalancedDrafts(const Draft& base, const DraftSpace& space)
      : base_(base), candidates_(DraftChoices(base.scenario, space).all()) {}

  std::size_t size() const { return candidates_.size(); }
  double memory() const { return static_cast<double>(cap().value); }
  plan::Bytes cap() const { return least_memory(base_.scenario.cluster); }
  bool fits(plan::Bytes peak) const { return cap() == plan::Bytes{} || peak <= cap(); }

  static bool is_likely(std::size_t /*at*/) { return true; }
  static double least_peak(std::size_t /*at*/) { return 0; }
  double least_s(std::size_t at) {
    const DraftCandidate& candidate = candidates_[at];
    return iteration_without_bubble(costs_for(candidate), candidate.scenario);
  }

  std::optional<DraftCandidate> price(const sim::Bound& bound, double /*most_s*/) {
    try {
      DraftCandidate candidate = candidates_[bound.candidate];
      BorderSimulator simulator = simulator_of(candidate);
      const sim::PartitionNeed need = simulator.need(simulator.boundaries());
      candidate.iteration_s = need.iteration.value;
      candidate.peak = need.peak;
      return simulated_.emplace_back(std::move(candidate));
    } catch (const plan::InputError&) {
      return {};
    } catch (const plan::Infeasible&) {
      return {};
    }
  }

  /// The quickest first.
  const std::vector<DraftCandidate>& simulated() {
    std::stable_sort(simulated_.begin(), simulated_.end(),
                     [](const auto& a, const auto& b) { return a.iteration_s < b.iteration_s; });
    return simulated_;
  }

  BorderSimulator simulator_of(const DraftCandidate& candidate) {
    return {candidate.scenario, costs_for(candidate), structures_};
  }

  std::optional<DraftPlan> plan_of(const DraftCandidate& candidate,
                                   const std::vector<int>& boundaries) {
    DraftPlan found{.draft = draft_of(candidate),
                    .devices = candidate.devices,
                    .figures = {},
                    .boundaries = boundaries};
    found.draft.scenario.pipeline.partition = boundaries;
    auto answer = what_if_.answer(found.draft);
    if (!std::holds_alternative<Answer>(answer))
      return {};
    found.figures = std::get<Answer>(answer).figures;
    return found;
  }

 private:
  Draft draft_of(const DraftCandidate& candidate) const {
    return {candidate.scenario, base_.costs};
  }

  /// They differ with the size of microbatches alone.
  const plan::LayerCosts& costs_for(const DraftCandidate& candidate) {
    const auto [at, is_new] = costs_.try_emplace(candidate.scenario.training.microbatch_size);
    if (is_new)
      at->second = costs_of(draft_of(candidate));
    return at->second;
  }

  const Draft& base_;
  const std::vector<DraftCandidate> candidates_;
  std::vector<DraftCandidate> simulated_;
  std::map<int, plan::LayerCosts> costs_;  // by size of the microbatches
  sim::StructureCache structures_;
  WhatIf what_if_{std::numeric_limits<int>::max()};
};

/// Moves the borders of the quickest; once interrupted, leaves them as they are.
class BorderSearch {
 public:
  BorderSearch(BalancedDrafts& drafts, const DraftSearchOptions& options,
               const sim::SearchAccount& account)
      : drafts_(drafts), options_(options), best_(options.most_plans, false) {
    static_cast<sim::SearchAccount&>(answer_) = account;
    answer_.too_large = 0;  // with balanced stages
  }

  DraftAnswer run() {
    const std::vector<DraftCandidate>& all = drafts_.simulated();
    const std::size_t most =
        std::max(least_refined, refined_for_each * static_cast<std::size_t>(options_.most_plans));
    for (std::size_t at = 0; at < all.size(); ++at) {
      const DraftCandidate& candidate = all[at];
      if (at < most && !answer_.interrupted) {
        refine(candidate);
        ask();
      } else if (!drafts_.fits(candidate.peak)) {
        ++answer_.too_large;
      } else if (answer_.interrupted && !best_.is_full()) {
        add(candidate, drafts_.simulator_of(candidate).boundaries());
      }
    }
    answer_.plans = best_.take();
    find_nearest();
    return std::move(answer_);
  }

 private:
  struct TooLarge {
    DraftCandidate candidate;
    std::vector<int> boundaries;
    sim::PartitionNeed need;
  };

  void refine(const DraftCandidate& candidate) {
    BorderSimulator simulator = drafts_.simulator_of(candidate);
    std::optional<TooLarge> quickest;  // of the cuts that do not fit
    const auto need_of = [&](const std::vector<int>& boundaries) {
      const sim::PartitionNeed need = simulator.need(boundaries);
      if (!drafts_.fits(need.peak) && (!quickest || need.iteration < quickest->need.iteration))
        quickest = {candidate, boundaries, need};
      return need;
    };
    const plan::Bytes cap = drafts_.cap();
    try {
      const auto found =
          sim::fastest_partition(simulator.layers(), simulator.boundaries(), need_of,
                                 cap == plan::Bytes{} ? std::nullopt : std::optional(cap));
      // The balanced one is counted already where it fits.
      answer_.simulated +=
          static_cast<std::size_t>(found.simulated) - (drafts_.fits(candidate.peak) ? 1 : 0);
      add(candidate, found.partition.boundaries);
    } catch (const plan::Infeasible&) {
      ++answer_.too_large;
    }
    if (quickest)
      too_large_.push_back(std::move(*quickest));
  }

  void ask() {
    const DraftPlan* const best = best_.plans().empty() ? nullptr : &best_.plans().front();
    if (options_.progress && !options_.progress(answer_.candidates, answer_.candidates, best))
      answer_.interrupted = true;
  }

  void add(const DraftCandidate& candidate, const std::vector<int>& boundaries) {
    if (auto found = drafts_.plan_of(candidate, boundaries))
      best_.add(std::move(*found));
  }

  void find_nearest() {
    const double best = answer_.plans.empty() ? std::numeric_limits<double>::infinity()
                                              : answer_.plans.front().figures.iteration_s;
    const TooLarge* nearest = nullptr;
    for (const TooLarge& one : too_large_)
      if (one.need.iteration.value < best &&
          (nearest == nullptr || one.need.peak < nearest->need.peak))
        nearest = &one;
    if (nearest == nullptr)
      return;
    DraftCandidate roomy = nearest->candidate;
    roomy.scenario.cluster = plan::roomy(roomy.scenario.cluster);
    answer_.nearest = drafts_.plan_of(roomy, nearest->boundaries);
    if (answer_.nearest)
      answer_.nearest->draft.scenario.cluster.device.memory = drafts_.cap();
  }

  BalancedDrafts& drafts_;
  const DraftSearchOptions& options_;
  sim::BestPlans<DraftPlan> best_;
  std::vector<TooLarge> too_large_;
  DraftAnswer answer_;
};

std::vector<int> sizes_of_stages(const std::vector<int>& boundaries) {
  std::vector<int> sizes;
  for (std::size_t stage = 1; stage < boundaries.size(); ++stage)
    sizes.push_back(boundaries[stage] - boundaries[stage - 1]);
  return sizes;
}

int stages_per_rank(const plan::Pipeline& pipeline) {
  return stage_count(request_of(pipeline)) / pipeline.ranks;
}

}  // namespace

sim::PlanFigures figures_of(const DraftPlan& plan) {
  return {plan.figures.iteration_s, static_cast<double>(plan.figures.peak.value)};
}

double iteration_without_bubble(const plan::LayerCosts& costs, const plan::Scenario& scenario) {
  if (scenario.training.jitter > 0)
    return 0;
  const auto work = [](const auto& layer) {
    return (layer.forward + layer.input_gradient + layer.weight_gradient).value;
  };
  double of_microbatch = 0;
  for (const plan::LayerCost& layer : costs.layers)
    of_microbatch +=
        costs.busy_cores > 1 ? std::min(work(layer), work(layer.contended)) : work(layer);
  const auto& speeds = scenario.cluster.rank_speeds;
  const double together =
      speeds.empty() ? scenario.pipeline.ranks : std::accumulate(speeds.begin(), speeds.end(), 0.0);
  return scenario.pipeline.microbatches * of_microbatch / together;
}

std::string changes_between(const plan::Scenario& before, const plan::Scenario& after) {
  std::string words;
  const auto add = [&](const char* field, const auto& from, const auto& to) {
    if (from != to)
      words += fmt::format("{}{} {}", words.empty() ? "" : ", ", field, to);
  };
  const plan::Pipeline &a = before.pipeline, &b = after.pipeline;
  add("ranks", a.ranks, b.ranks);
  add("replicas", a.replicas, b.replicas);
  add("microbatches", a.microbatches, b.microbatches);
  add("schedule", a.schedule.label(), b.schedule.label());
  add("chunks", stages_per_rank(a), stages_per_rank(b));
  add("microbatch size", before.training.microbatch_size, after.training.microbatch_size);
  add("recompute", to_string(before.training.recompute), to_string(after.training.recompute));
  add("ZeRO", before.training.zero, after.training.zero);
  return words;
}

std::string words_of(const DraftPlan& plan) {
  const plan::Scenario& scenario = plan.draft.scenario;
  const plan::Pipeline& pipeline = scenario.pipeline;
  std::string words = fmt::format("{} ranks, ", pipeline.ranks);
  if (pipeline.replicas > 1)
    words += fmt::format("{} replicas, ", pipeline.replicas);
  words += fmt::format("{}, {} microbatches of {}", pipeline.schedule.label(),
                       pipeline.microbatches, scenario.training.microbatch_size);
  if (scenario.training.recompute != plan::RecomputeMode::None)
    words += fmt::format(", {} recomputation", to_string(scenario.training.recompute));
  if (scenario.training.zero > 0)
    words += fmt::format(", ZeRO {}", scenario.training.zero);
  return words + fmt::format(", layers {}", fmt::join(sizes_of_stages(plan.boundaries), " "));
}

DraftAnswer search_drafts(const Draft& draft, const DraftSpace& space,
                          const DraftSearchOptions& options) {
  const auto started = std::chrono::steady_clock::now();
  require_searchable(space);
  BalancedDrafts drafts(draft, space);
  const auto ask = [&](std::size_t decided, std::size_t candidates, const DraftCandidate*) {
    return !options.progress || options.progress(decided, candidates, nullptr);
  };
  const sim::SearchAccount account =
      sim::search(drafts, {.most_plans = options.most_plans, .progress = ask});
  DraftAnswer answer = BorderSearch(drafts, options, account).run();
  if (answer.candidates == 0)
    throw plan::InputError(
        fmt::format("nothing divides {} samples among {} devices: no plan to look at",
                    draft.scenario.pipeline.replicas * draft.scenario.pipeline.microbatches *
                        draft.scenario.training.microbatch_size,
                    space.devices));
  answer.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return answer;
}

}  // namespace pipewright::loop
