#include "pipewright/search/calibration/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "class_fit.hpp"
#include "pipewright/plan/error.hpp"

namespace pipewright::search {
namespace {

using models::MeasuredRun;
using plan::ConstantRule;
using plan::MachineConstants;
using plan::RecomputeMode;

void require_figures(const plan::Cluster& cluster, const std::vector<MeasuredRun>& runs) {
  models::require_figures(cluster);
  for (const MeasuredRun& run : runs)
    require_nodes(cluster, run.cut.devices(), "run " + run.id);
}

/// Returns true if some run does not say whether it recomputes.
bool is_unsaid(const plan::Cluster& cluster, const std::vector<MeasuredRun>& runs, bool several) {
  return std::any_of(runs.begin(), runs.end(), [&](const MeasuredRun& run) {
    return !run.tells_recompute && on_several_nodes(cluster, run.cut.devices()) == several;
  });
}

/// Returns the physics under the assumption that explains the times best.
Physics best_physics(const plan::Cluster& cluster, const std::vector<MeasuredRun>& runs,
                     Assumption& assumed) {
  const auto choices = [](bool unsaid) {
    return unsaid ? std::vector{RecomputeMode::None, RecomputeMode::Full}
                  : std::vector{RecomputeMode::None};
  };
  std::optional<Physics> best;
  for (const RecomputeMode within : choices(is_unsaid(cluster, runs, false)))
    for (const RecomputeMode between : choices(is_unsaid(cluster, runs, true))) {
      Physics physics = fit_physics(cluster, Runs(cluster, runs, {within, between}));
      if (best && best->cost <= physics.cost)
        continue;
      best = std::move(physics);
      assumed = {within, between};
    }
  // If no run of one kind was undecided, assume the same as for the other kind.
  if (!is_unsaid(cluster, runs, false))
    assumed.within = assumed.between;
  else if (!is_unsaid(cluster, runs, true))
    assumed.between = assumed.within;
  return *best;
}

std::vector<FittedConstant> constants_of(const plan::Machine& prior, const Physics& physics,
                                         const MachineConstants& last) {
  std::vector<FittedConstant> constants;
  for (const ConstantRule& rule : plan::constant_rules()) {
    const double value = last.*rule.member;
    constants.push_back({.key = rule.key,
                         .prior = prior.constants.*rule.member,
                         .value = value,
                         .deviation = physics.spread.*rule.member,
                         .at_bound = value >= 0.999 * rule.most || value <= 1.001 * rule.least,
                         .matters = physics.matters.*rule.member > 0});
  }
  return constants;
}

}  // namespace

Calibration as_it_is(const plan::Cluster& cluster) {
  const plan::Machine machine = models::machine_of(cluster);
  Calibration answer{.cluster = cluster, .physics = machine.constants, .constants = {}};
  Physics physics{.constants = machine.constants, .spread = machine.spread, .matters = {}};
  for (const ConstantRule& rule : plan::constant_rules())
    physics.matters.*rule.member = 0;
  answer.constants = constants_of(machine, physics, machine.constants);
  answer.cluster.machine = machine;
  return answer;
}

Calibration calibrate(const plan::Cluster& cluster, const std::vector<MeasuredRun>& runs) {
  require_figures(cluster, runs);
  Assumption assumed;
  Physics physics = best_physics(cluster, runs, assumed);
  fit_memory(cluster, runs, assumed, physics);
  Calibration answer{.cluster = cluster,
                     .physics = physics.constants,
                     .constants = {},
                     .within_node = assumed.within,
                     .between_nodes = assumed.between,
                     .class_spread = 0,
                     .physics_error = physics.mean_error};
  plan::Machine machine = models::machine_of(cluster);
  const plan::Machine prior = machine;
  machine.constants = physics.constants;
  machine.spread = physics.spread;
  machine.layers.clear();
  if (const auto width = best_width(cluster, runs, assumed, physics)) {
    const Runs all(cluster, runs, assumed);
    ClassFit fit = fit_classes(cluster, all, physics, *width);
    note_fit(physics, rules_for(ConstantRule::Use::Schedule), fit.answer);
    machine.constants = fit.constants;
    machine.spread = physics.spread;
    machine.layers = std::move(fit.classes);
    answer.class_spread = width->spread;
  }
  answer.constants = constants_of(prior, physics, machine.constants);
  answer.cluster.machine = std::move(machine);
  return answer;
}

std::vector<PredictedRun> predict_runs(const Calibration& calibration,
                                       const std::vector<MeasuredRun>& runs) {
  const plan::Cluster& cluster = calibration.cluster;
  require_figures(cluster, runs);
  const Assumption assumed{calibration.within_node, calibration.between_nodes};
  const Runs all(cluster, runs, assumed);
  RunSimulator simulator(cluster);
  std::vector<PredictedRun> predicted;
  for (std::size_t row = 0; row < all.size(); ++row) {
    PredictedRun own{.physics_s = all.time(simulator, row, calibration.physics)};
    const plan::LayerClass* const known =
        models::class_in(cluster.machine->layers, layer_class_of(all[row]));
    own.class_known = known != nullptr;
    own.iteration_s = known == nullptr ? own.physics_s
                                       : all.time(simulator, row, cluster.machine->constants,
                                                  models::factors_of(*known));
    predicted.push_back(own);
  }
  return predicted;
}

}  // namespace pipewright::search
