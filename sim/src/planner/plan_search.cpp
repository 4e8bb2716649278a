#include "pipewright/sim/planner/plan_search.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>

#include "pipewright/plan/error.hpp"
#include "pipewright/plan/runs/transformer_memory.hpp"
#include "pipewright/sim/calibration/run_costs.hpp"
#include "pipewright/sim/calibration/run_simulator.hpp"

namespace pipewright::sim {
namespace {

using plan::TrainingRun;

constexpr std::size_t asked_every = 4096;  // candidates

void require_sizes(const PlanSpace& space) {
  const TrainingRun& model = space.model;
  if (model.gpus < 1 || model.global_batch < 1 || model.sequence < 1 || model.layers < 1)
    throw plan::InputError("a plan needs a model, GPUs, a global batch and a sequence");
  for (const std::string& schedule : space.schedules)
    if (const auto& planned = plan::planned_schedules();
        std::find(planned.begin(), planned.end(), schedule) == planned.end())
      throw plan::InputError(fmt::format("no plan has the schedule \"{}\"{}; these have: {}",
                                         schedule, plan::did_you_mean(schedule, planned),
                                         fmt::join(planned, ", ")));
}

class Search {
 public:
  Search(const plan::Cluster& cluster, const PlanSpace& space, const SearchOptions& options)
      : cluster_(cluster),
        machine_(cluster.machine.value_or(plan::Machine{})),
        options_(options),
        runs_(candidates_of(cluster, space, shapes_)),
        simulator_(cluster) {}

  PlanAnswer run() {
    answer_.candidates = runs_.size();
    bound_all();
    if (options_.pareto)
      simulate_front();
    else
      simulate_best();
    find_better_that_is_too_large();
    return std::move(answer_);
  }

 private:
  struct Candidate {
    double least_s = 0;
    double peak_bytes = 0;
    std::size_t run = 0;
  };

  bool fits(const Candidate& candidate) const {
    return cluster_.device.memory.value <= 0 ||
           candidate.peak_bytes <= static_cast<double>(cluster_.device.memory.value);
  }

  plan::TransformerWork work_of(const TrainingRun& run) const {
    return plan::transformer_work(cluster_, run, run.recompute);
  }

  /// Costs of the run, which stay until the next call.
  const StepCosts& costs(const TrainingRun& run, const plan::TransformerWork& work) {
    set_run_costs(costs_, cluster_, run, work, machine_.constants,
                  factors_in(machine_.layers, run));
    return costs_;
  }

  const plan::PipelineShape& shape_of(const TrainingRun& run) {
    return *shapes_.find(run.schedule_name(), run.pipeline, run.microbatches(), run.chunks);
  }

  void bound_all() {
    for (std::size_t at = 0; at < runs_.size(); ++at) {
      const TrainingRun& run = runs_[at];
      Candidate candidate{.run = at};
      const plan::PipelineShape& shape = shape_of(run);
      candidate.least_s = least_iteration(costs(run, work_of(run)), shape, run.microbatches());
      candidate.peak_bytes =
          plan::peak_of(plan::transformer_memory(run, run.recompute, shape), machine_.constants);
      if (fits(candidate))
        candidates_.push_back(candidate);
      else
        too_large_.push_back(candidate);
      if (at % asked_every == 0 && !goes_on(at))
        break;
    }
    answer_.too_large = too_large_.size();
    const auto is_faster = [](const Candidate& a, const Candidate& b) {
      return a.least_s != b.least_s ? a.least_s < b.least_s : a.run < b.run;
    };
    std::sort(candidates_.begin(), candidates_.end(), is_faster);
    std::sort(too_large_.begin(), too_large_.end(), is_faster);
  }

  bool goes_on(std::size_t done) {
    const FoundPlan* const best = answer_.plans.empty() ? nullptr : &answer_.plans.front();
    if (options_.progress && !options_.progress(done, runs_.size(), best))
      answer_.interrupted = true;
    return !answer_.interrupted;
  }

  FoundPlan simulated(const Candidate& candidate) {
    const TrainingRun& run = runs_[candidate.run];
    const plan::TransformerWork work = work_of(run);
    FoundPlan plan{.run = run, .least_s = candidate.least_s, .peak_bytes = candidate.peak_bytes};
    plan.iteration_s =
        simulator_.iteration(run, work, machine_.constants, factors_in(machine_.layers, run));
    double busiest = 0;
    const StepCosts& priced = costs(run, work);
    for (const std::vector<int>& stages : shape_of(run).stages_of_rank)
      busiest = std::max(busiest, busy_of(priced, stages, run.microbatches()));
    plan.bubble = std::max(0.0, 1 - busiest / plan.iteration_s);
    plan.tokens_per_s = 1.0 * run.global_batch * run.sequence / plan.iteration_s;
    plan.mfu = model_flops(run) / (plan.iteration_s * run.gpus * cluster_.device.flops_per_s);
    return plan;
  }

  /// In the order of their bounds, until no bound is below the worst plan that is kept.
  void simulate_best() {
    auto& plans = answer_.plans;
    const auto most = static_cast<std::size_t>(options_.most_plans);
    for (std::size_t at = 0; at < candidates_.size(); ++at) {
      if (answer_.interrupted || !goes_on(runs_.size()))
        return;
      const bool is_full = plans.size() >= most;
      if (is_full && candidates_[at].least_s > plans.back().iteration_s && !options_.exhaustive) {
        answer_.bounded = candidates_.size() - at;
        break;
      }
      FoundPlan plan = simulated(candidates_[at]);
      ++answer_.simulated;
      // Of equals, the one that needs less memory.
      const auto place =
          std::upper_bound(plans.begin(), plans.end(), plan, [](const auto& a, const auto& b) {
            return a.iteration_s != b.iteration_s ? a.iteration_s < b.iteration_s
                                                  : a.peak_bytes < b.peak_bytes;
          });
      plans.insert(place, std::move(plan));
      if (plans.size() > most)
        plans.pop_back();
    }
  }

  /// Spares what a plan is known to be faster than with as little memory.
  void simulate_front() {
    auto& front = answer_.plans;
    for (const Candidate& candidate : candidates_) {
      if (answer_.interrupted || !goes_on(runs_.size()))
        return;
      const auto beats = [](const FoundPlan& plan, double time, double bytes) {
        return plan.iteration_s <= time && plan.peak_bytes <= bytes;
      };
      if (!options_.exhaustive &&
          std::any_of(front.begin(), front.end(), [&](const FoundPlan& plan) {
            return beats(plan, candidate.least_s, candidate.peak_bytes);
          })) {
        ++answer_.bounded;
        continue;
      }
      FoundPlan found = simulated(candidate);
      ++answer_.simulated;
      if (std::any_of(front.begin(), front.end(), [&](const FoundPlan& plan) {
            return beats(plan, found.iteration_s, found.peak_bytes);
          }))
        continue;
      std::erase_if(front, [&](const FoundPlan& plan) {
        return beats(found, plan.iteration_s, plan.peak_bytes);
      });
      const auto place = std::upper_bound(
          front.begin(), front.end(), found,
          [](const auto& a, const auto& b) { return a.iteration_s < b.iteration_s; });
      front.insert(place, std::move(found));
    }
  }

  void find_better_that_is_too_large() {
    if (answer_.plans.empty() && !too_large_.empty()) {
      answer_.smallest = simulated(*std::min_element(
          too_large_.begin(), too_large_.end(),
          [](const auto& a, const auto& b) { return a.peak_bytes < b.peak_bytes; }));
      return;
    }
    // Of those that would be faster, the one that is nearest to fitting.
    const Candidate* nearest = nullptr;
    std::optional<FoundPlan> found;
    for (const Candidate& candidate : too_large_) {
      if (answer_.plans.empty() || candidate.least_s >= answer_.plans.front().iteration_s)
        break;
      if (nearest != nullptr && candidate.peak_bytes >= nearest->peak_bytes)
        continue;
      FoundPlan plan = simulated(candidate);
      if (plan.iteration_s < answer_.plans.front().iteration_s) {
        nearest = &candidate;
        found = std::move(plan);
      }
    }
    answer_.too_large_but_faster = std::move(found);
  }

  const plan::Cluster& cluster_;
  const plan::Machine machine_;
  const SearchOptions& options_;
  plan::PipelineShapes shapes_;
  const std::vector<TrainingRun> runs_;
  std::vector<Candidate> candidates_, too_large_;
  RunSimulator simulator_;
  StepCosts costs_;
  PlanAnswer answer_;
};

}  // namespace

Regret regret_of(const plan::Cluster& cluster, const std::vector<FoundPlan>& plans, int draws) {
  const plan::Machine machine = cluster.machine.value_or(plan::Machine{});
  RunSimulator simulator(cluster);
  std::mt19937_64 random(1);
  // Twelve uniform numbers add up to a normal one on every machine alike.
  const auto normal = [&] {
    double sum = -6;
    for (int part = 0; part < 12; ++part)
      sum += static_cast<double>(random() >> 11U) * 0x1.0p-53;
    return sum;
  };
  // What no constant changes.
  struct Counted {
    const TrainingRun& run;
    plan::TransformerWork work;
    plan::LayerFactors factors;
  };
  std::vector<Counted> counted;
  for (const FoundPlan& plan : plans)
    counted.push_back({plan.run, plan::transformer_work(cluster, plan.run, plan.run.recompute),
                       factors_in(machine.layers, plan.run)});
  Regret regret;
  for (int draw = 0; draw < draws; ++draw) {
    plan::MachineConstants constants = machine.constants;
    for (const plan::ConstantRule& rule : plan::constant_rules()) {
      double& value = constants.*rule.member;
      value = std::clamp(value * std::exp(machine.spread.*rule.member * normal()), rule.least,
                         rule.most);
    }
    double best = std::numeric_limits<double>::infinity(), first = 0;
    for (const Counted& plan : counted) {
      const double time = simulator.iteration(plan.run, plan.work, constants, plan.factors);
      first = &plan == counted.data() ? time : first;
      best = std::min(best, time);
    }
    regret.mean += (first / best - 1) / draws;
    regret.best_share += (first <= best ? 1.0 : 0.0) / draws;
  }
  return regret;
}

PlanAnswer search_plans(const plan::Cluster& cluster, const PlanSpace& space,
                        const SearchOptions& options) {
  const auto started = std::chrono::steady_clock::now();
  require_sizes(space);
  require_figures(cluster, {space.model});
  PlanAnswer answer = Search(cluster, space, options).run();
  answer.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return answer;
}

}  // namespace pipewright::sim
