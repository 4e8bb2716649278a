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
  double least_s = 0;      // the bound
  double iteration_s = 0;  // once it is simulated
  plan::Bytes peak;
  bool fits = false;
};

class DraftSearcher {
 public:
  DraftSearcher(const Draft& draft, const DraftSpace& space, const DraftSearchOptions& options)
      : base_(draft), space_(space), options_(options), cap_(draft.scenario.cluster.device.memory) {
    const plan::Pipeline& pipeline = draft.scenario.pipeline;
    speeds_ = space.speeds;
    devices_ = space.devices > 0 ? space.devices : plan::ranks_of_job(pipeline);
    if (speeds_.empty())
      speeds_.assign(static_cast<std::size_t>(devices_), 1);
    samples_ = pipeline.replicas * pipeline.microbatches * draft.scenario.training.microbatch_size;
    const int groups = draft.scenario.training.gradient_groups;
    groups_ = groups > 0 ? groups : pipeline.replicas;
  }

  DraftAnswer run() {
    std::vector<DraftCandidate> all = candidates();
    answer_.candidates = all.size();
    for (DraftCandidate& candidate : all)
      candidate.least_s = least_iteration(costs_for(candidate), candidate.scenario);
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.least_s < b.least_s; });
    for (const DraftCandidate& candidate : all) {
      ++done_;
      if (candidate.least_s > slowest_wanted())
        ++answer_.bounded;
      else
        simulate(candidate);
      if (!goes_on())
        break;
    }
    std::stable_sort(simulated_.begin(), simulated_.end(),
                     [](const auto& a, const auto& b) { return a.iteration_s < b.iteration_s; });
    refine();
    find_too_large();
    return std::move(answer_);
  }

 private:
  // ---- what there is to choose from ----------------------------------------------------------

  std::vector<DraftCandidate> candidates() const {
    std::vector<DraftCandidate> found;
    const int layers = static_cast<int>(model_of(base_.scenario).layers.size());
    for (const int ranks : asked_or(space_.ranks, up_to(std::min(devices_, layers))))
      for (const int replicas : up_to(devices_ / std::max(1, ranks)))
        if (uses_enough(ranks * replicas) && (!space_.keeps_bits || groups_ % replicas == 0))
          with_ranks(ranks, replicas, layers, found);
    return found;
  }

  bool uses_enough(int used) const { return devices_ <= small_job || 4 * used > 3 * devices_; }

  void with_ranks(int ranks, int replicas, int layers, std::vector<DraftCandidate>& found) const {
    const plan::Training& training = base_.scenario.training;
    const std::vector<int> own{training.microbatch_size};
    for (const int microbatch : space_.keeps_bits ? own : asked_or(space_.microbatch, own)) {
      if (samples_ % (replicas * microbatch) != 0)
        continue;
      for (const std::string& schedule : asked_or(space_.schedules, usual_schedules()))
        for (const int chunks :
             asked_or(space_.chunks, plan::usual_chunks(plan::find_schedule(schedule).chunks)))
          for (const auto recompute : asked_or(space_.recompute, {training.recompute}))
            for (const int zero : asked_or(space_.zero, {training.zero})) {
              if (ranks * chunks > layers || (ranks == 1 && schedule != "1f1b") ||
                  (zero > 0 && replicas == 1 && training.zero == 0))
                continue;
              DraftCandidate& candidate = found.emplace_back();
              plan::Scenario& scenario = candidate.scenario;
              scenario = base_.scenario;
              scenario.pipeline.ranks = ranks;
              scenario.pipeline.replicas = replicas;
              scenario.pipeline.microbatches = samples_ / (replicas * microbatch);
              scenario.pipeline.schedule = schedule;
              scenario.pipeline.chunks = chunks;
              scenario.pipeline.partition = "profile";
              scenario.training.microbatch_size = microbatch;
              scenario.training.recompute = recompute;
              scenario.training.zero = zero;
              scenario.training.microbatch_lengths.clear();
              if (space_.keeps_bits)
                scenario.training.gradient_groups = groups_;
              place(candidate);
            }
    }
  }

  /// On the fastest devices, in their order. A rank's replicas wait for the slowest of them.
  void place(DraftCandidate& candidate) const {
    plan::Scenario& scenario = candidate.scenario;
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
    candidate.devices = std::move(devices);
  }

  // ---- one after the other -------------------------------------------------------------------

  /// A candidate's plan, for whatever borders.
  class Bench {
   public:
    Bench(const plan::Scenario& scenario, const plan::LayerCosts& costs,
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

    const std::vector<int>& boundaries() const { return plan_.partition.boundaries; }
    sim::CutNeed need(const std::vector<int>& boundaries) {
      const auto costs = sim::step_costs_of(scenario_, costs_, {boundaries});
      const sim::Times& times = simulator_.run_shared(costs);
      return {{times.iteration}, memory_.curves(costs, times).highest_peak()};
    }
    int layers() const { return static_cast<int>(costs_.layers.size()); }

   private:
    /// What is too large is to be measured, not refused; but some schedules fit themselves to it.
    static plan::Scenario roomy(plan::Scenario scenario) {
      if (!plan::find_schedule(scenario.pipeline.schedule).takes_memory_units)
        scenario.cluster.device.memory = {};
      return scenario;
    }

    const plan::Scenario& scenario_;
    const plan::LayerCosts& costs_;
    const sim::ScenarioPlan plan_;
    sim::Simulator simulator_;
    sim::MemoryModel memory_;
  };

  /// They differ with the size of microbatches alone.
  const plan::LayerCosts& costs_for(const DraftCandidate& candidate) {
    const auto [at, is_new] = costs_.try_emplace(candidate.scenario.training.microbatch_size);
    if (is_new)
      at->second = costs_of(draft_of(candidate));
    return at->second;
  }

  Draft draft_of(const DraftCandidate& candidate) const {
    return {candidate.scenario, base_.costs};
  }

  Bench bench_of(const DraftCandidate& candidate) {
    return {candidate.scenario, costs_for(candidate), structures_};
  }

  bool fits(plan::Bytes peak) const { return cap_ == plan::Bytes{} || peak <= cap_; }

  /// Of as many plans as are wanted, the slowest that is known; infinite while there are fewer.
  double slowest_wanted() const {
    return quickest_.size() < static_cast<std::size_t>(options_.most_plans)
               ? std::numeric_limits<double>::infinity()
               : quickest_.back();
  }

  void simulate(const DraftCandidate& candidate) {
    try {
      Bench bench = bench_of(candidate);
      const sim::CutNeed need = bench.need(bench.boundaries());
      ++answer_.simulated;
      DraftCandidate& kept = simulated_.emplace_back(candidate);
      kept.iteration_s = need.iteration.value;
      kept.peak = need.peak;
      kept.fits = fits(need.peak);
      if (kept.fits) {
        quickest_.insert(std::upper_bound(quickest_.begin(), quickest_.end(), kept.iteration_s),
                         kept.iteration_s);
        if (quickest_.size() > static_cast<std::size_t>(options_.most_plans))
          quickest_.pop_back();
      }
    } catch (const plan::InputError&) {
      ++answer_.impossible;
    } catch (const plan::Infeasible&) {
      ++answer_.impossible;
    }
  }

  bool goes_on() {
    const DraftPlan* const best = answer_.plans.empty() ? nullptr : &answer_.plans.front();
    if (options_.progress && !options_.progress(done_, answer_.candidates, best))
      answer_.interrupted = true;
    return !answer_.interrupted;
  }

  /// Moves the borders of the quickest; once interrupted, leaves them as they are.
  void refine() {
    const std::size_t most =
        std::max(least_refined, refined_for_each * static_cast<std::size_t>(options_.most_plans));
    for (std::size_t at = 0; at < simulated_.size(); ++at) {
      const DraftCandidate& candidate = simulated_[at];
      if (at < most && !answer_.interrupted) {
        refine(candidate);
        goes_on();
      } else if (!candidate.fits) {
        ++answer_.too_large;
      } else if (answer_.interrupted && !enough_plans()) {
        add(candidate, bench_of(candidate).boundaries());
      }
    }
  }

  void refine(const DraftCandidate& candidate) {
    Bench bench = bench_of(candidate);
    try {
      const auto found = sim::fastest_partition(
          bench.layers(), bench.boundaries(),
          [&](const std::vector<int>& boundaries) {
            const sim::CutNeed need = bench.need(boundaries);
            if (!fits(need.peak))
              note_too_large(candidate, boundaries, need);
            return need;
          },
          cap_ == plan::Bytes{} ? std::nullopt : std::optional(cap_));
      answer_.simulated += static_cast<std::size_t>(found.simulated) - 1;
      add(candidate, found.partition.boundaries);
    } catch (const plan::Infeasible&) {
      ++answer_.too_large;
    }
  }

  bool enough_plans() const {
    return answer_.plans.size() >= static_cast<std::size_t>(options_.most_plans);
  }

  void add(const DraftCandidate& candidate, const std::vector<int>& boundaries) {
    if (auto found = plan_of(candidate, boundaries)) {
      auto& plans = answer_.plans;
      // Of equals, the one that needs less memory.
      const auto rank = [](const DraftPlan& plan) {
        return std::pair{plan.figures.iteration_s, plan.figures.peak};
      };
      const auto place = std::upper_bound(
          plans.begin(), plans.end(), *found,
          [&](const DraftPlan& a, const DraftPlan& b) { return rank(a) < rank(b); });
      plans.insert(place, std::move(*found));
      if (plans.size() > static_cast<std::size_t>(options_.most_plans))
        plans.pop_back();
    }
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

  struct TooLarge {
    DraftCandidate candidate;
    std::vector<int> boundaries;
    sim::CutNeed need;
  };

  /// Of a candidate's cuts, the quickest.
  void note_too_large(const DraftCandidate& candidate, const std::vector<int>& boundaries,
                      const sim::CutNeed& need) {
    if (too_large_.empty() || noted_ != &candidate) {
      too_large_.push_back({candidate, boundaries, need});
      noted_ = &candidate;
    } else if (need.iteration < too_large_.back().need.iteration) {
      too_large_.back().boundaries = boundaries;
      too_large_.back().need = need;
    }
  }

  void find_too_large() {
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
    roomy.scenario.cluster.device.memory = {};
    answer_.too_large_plan = plan_of(roomy, nearest->boundaries);
    if (answer_.too_large_plan)
      answer_.too_large_plan->draft.scenario.cluster.device.memory = cap_;
  }

  const Draft& base_;
  const DraftSpace& space_;
  const DraftSearchOptions& options_;
  const plan::Bytes cap_;
  std::vector<double> speeds_;
  int devices_ = 0, samples_ = 0, groups_ = 1;
  std::vector<double> quickest_;
  std::size_t done_ = 0;
  std::map<int, plan::LayerCosts> costs_;  // by size of the microbatches
  sim::StructureCache structures_;
  WhatIf what_if_{std::numeric_limits<int>::max()};
  std::vector<DraftCandidate> simulated_;
  std::vector<TooLarge> too_large_;
  const DraftCandidate* noted_ = nullptr;  // whose cuts the last of them is one of
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

double least_iteration(const plan::LayerCosts& costs, const plan::Scenario& scenario) {
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
  add("schedule", a.schedule, b.schedule);
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
  words += fmt::format("{}, {} microbatches of {}", pipeline.schedule, pipeline.microbatches,
                       scenario.training.microbatch_size);
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
  DraftAnswer answer = DraftSearcher(draft, space, options).run();
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
