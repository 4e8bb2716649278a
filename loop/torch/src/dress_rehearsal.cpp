#include "pipewright/loop_torch/dress_rehearsal.hpp"

#include <algorithm>
#include <numeric>

#include "pipewright/plan/program/computation.hpp"
#include "pipewright/plan/statistics.hpp"
#include "pipewright/sim/durations.hpp"

namespace pipewright::loop {
namespace {

constexpr int warm_up_plays = 1;
constexpr int plays_to_one_alone = 4;

int stage_of(const plan::Partition& partition, int layer) {
  const auto& borders = partition.boundaries;
  return static_cast<int>(std::upper_bound(borders.begin(), borders.end(), layer) -
                          borders.begin()) -
         1;
}

const std::vector<plan::Instruction>& script_of(const Plan& plan, int rank) {
  return plan.program().ranks[static_cast<std::size_t>(rank)];
}

using Benches = std::vector<std::unique_ptr<profiler::LayerBench>>;

Benches benches_of(const plan::Scenario& scenario, const Plan& plan, const Workload& workload) {
  Benches benches;
  for (int rank = 0; rank < scenario.pipeline.ranks; ++rank)
    for (int replica = 0; replica < scenario.pipeline.replicas; ++replica)
      benches.push_back(std::make_unique<profiler::LayerBench>(
          workload.setup(), workload.device(), [&](int layer) {
            return plan.program().placement.holds(rank, stage_of(plan.partition, layer));
          }));
  return benches;
}

}  // namespace

bool can_rehearse(const plan::Program& program, const Workload& workload) {
  return workload.device().device.is_cpu() && !program.asynchronous &&
         !plan::is_forward_only(program);
}

DressRehearsal::DressRehearsal(const plan::Scenario& scenario, const Plan& plan,
                               const Workload& workload)
    : scenario_(scenario),
      plan_(plan),
      benches_(benches_of(scenario, plan, workload)),
      cores_(profiler::rank_cores(benches_)),
      contended_(benches_.size()) {
  const profiler::LayerBench whole(workload.setup(), workload.device());
  const auto parts = profiler::stage_parts(whole, plan.partition.boundaries);
  const profiler::Recomputation again{plan.program().recompute_layers,
                                      plan.program().selective_recompute};
  for (std::size_t bench = 0; bench < benches_.size(); ++bench)
    rehearsals_.emplace_back(*benches_[bench], parts,
                             script_of(plan, static_cast<int>(bench) / scenario.pipeline.replicas),
                             again);
  for (int i = 0; i < warm_up_plays; ++i)
    cores_.together([&](int rank) { rehearsals_[static_cast<std::size_t>(rank)].play(nullptr); });
}

void DressRehearsal::play() {
  if (plays_.empty())
    begin_ = std::chrono::steady_clock::now();
  if (rehearsals_.size() > 1 && played() % plays_to_one_alone == 0) {
    const auto rank = static_cast<std::size_t>(played() / plays_to_one_alone) % rehearsals_.size();
    cores_.alone(static_cast<int>(rank), [&] { rehearsals_[rank].play(&alone_); });
  }
  cores_.together([&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    rehearsals_[at].play(&contended_[at]);
  });
  std::vector<double> seconds;
  for (std::size_t bench = 0; bench < rehearsals_.size();
       bench += static_cast<std::size_t>(scenario_.pipeline.replicas)) {
    const auto& own = rehearsals_[bench].seconds();
    seconds.insert(seconds.end(), own.begin(), own.end());
  }
  plays_.push_back(std::move(seconds));
  measured_over_ = {
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count()};
}

plan::LayerCosts DressRehearsal::costs(plan::LayerCosts costs) const {
  std::vector<profiler::LayerSamples> all(costs.layers.size() + 1);
  for (const auto& of_rank : contended_)
    for (std::size_t l = 0; l < of_rank.size(); ++l)
      all[l].append(of_rank[l]);
  std::vector<double> sums;
  for (const auto& play : plays_)
    sums.push_back(std::accumulate(play.begin(), play.end(), 0.0));
  costs.drift = plan::drift(sums);
  costs.busy_cores = static_cast<int>(rehearsals_.size());
  costs.measured_over = measured_over_;
  for (std::size_t l = 0; l < all.size(); ++l) {
    plan::LayerCost& cost = l < costs.layers.size() ? costs.layers[l] : costs.loss;
    // What a backward computes again selectively, its costs name by itself.
    const plan::Seconds again =
        plan_.program().selective_recompute ? cost.selective_forward : plan::Seconds{};
    const plan::LayerTimes planned{cost.forward, cost.input_gradient + again, cost.weight_gradient,
                                   cost.splitting, cost.optimizer_step};
    const auto times_of = [&](const profiler::LayerSamples& samples) {
      plan::LayerTimes times = profiler::times_of(samples, planned);
      times.input_gradient = std::max(plan::Seconds{}, times.input_gradient - again);
      return times;
    };
    const plan::LayerTimes together = times_of(all[l]);
    // A layer that was never played alone is as it was beside others.
    const bool heard = l < alone_.size() && !alone_[l].forward.empty();
    const plan::LayerTimes alone = heard ? times_of(alone_[l]) : together;
    cost.contended = costs.busy_cores > 1 ? together : plan::LayerTimes{};
    cost.forward = alone.forward;
    cost.input_gradient = alone.input_gradient;
    cost.weight_gradient = alone.weight_gradient;
    cost.splitting = alone.splitting;
    cost.optimizer_step = alone.optimizer_step;
  }
  return costs;
}

std::vector<sim::StepCosts> DressRehearsal::step_costs(const plan::LayerCosts& costs) const {
  const sim::StepCosts plain = sim::step_costs_of(scenario_, costs, plan_.partition);
  std::vector<sim::StepCosts> all;
  for (const auto& seconds : plays_)
    all.push_back(with_measured(*plan_.structure, plain, seconds));
  return all;
}

sim::StepCosts with_measured(const sim::Structure& structure, sim::StepCosts costs,
                             const std::vector<double>& seconds) {
  sim::Durations usual;
  usual.fill(structure, costs, costs.contended.empty() ? costs.stages : costs.contended);
  costs.event_factors.assign(static_cast<std::size_t>(structure.size()), 1.0);
  for (int event = 0; event < structure.size(); ++event) {
    const double wanted = seconds[static_cast<std::size_t>(event)];
    const double known = usual.of(structure, event).held;
    if (wanted > 0 && known > 0)
      costs.event_factors[static_cast<std::size_t>(event)] = wanted / known;
  }
  return costs;
}

}  // namespace pipewright::loop
