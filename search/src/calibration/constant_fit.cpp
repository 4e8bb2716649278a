#include "constant_fit.hpp"

#include <algorithm>
#include <cmath>

#include "pipewright/models/transformer/transformer_memory.hpp"

namespace pipewright::search {

using models::MeasuredRun;
using plan::ConstantRule;
using plan::MachineConstants;

namespace {

/// Residuals of the physics beyond this count linearly; its errors are a few percent.
constexpr double physics_scale = 0.015;
/// Peaks are counted exactly, so little is left for the constants to explain.
constexpr double memory_scale = 0.004;

}  // namespace

std::vector<const ConstantRule*> rules_for(ConstantRule::Use use) {
  std::vector<const ConstantRule*> rules;
  for (const ConstantRule& rule : plan::constant_rules())
    if (rule.use == use ||
        (rule.use == ConstantRule::Use::Both && use != ConstantRule::Use::Memory))
      rules.push_back(&rule);
  return rules;
}

MachineConstants with_values(MachineConstants constants,
                             const std::vector<const ConstantRule*>& rules,
                             const std::vector<double>& logarithms) {
  for (std::size_t at = 0; at < rules.size(); ++at)
    constants.*rules[at]->member = std::exp(logarithms[at]);
  return constants;
}

std::vector<FitParameter> parameters_of(const std::vector<const ConstantRule*>& rules,
                                        const MachineConstants& means,
                                        const plan::MachineSpread& spread) {
  std::vector<FitParameter> parameters;
  for (const ConstantRule* rule : rules)
    parameters.push_back({.mean = std::log(means.*rule->member),
                          .spread = std::max(spread.*rule->member, 1e-3),
                          .least = std::log(rule->least),
                          .most = std::log(rule->most)});
  return parameters;
}

std::vector<double> means_of(const std::vector<FitParameter>& parameters) {
  std::vector<double> means;
  for (const FitParameter& parameter : parameters)
    means.push_back(parameter.mean);
  return means;
}

void note_fit(Physics& physics, const std::vector<const ConstantRule*>& rules,
              const FitAnswer& answer) {
  for (std::size_t at = 0; at < rules.size(); ++at) {
    physics.spread.*rules[at]->member = answer.deviations[at];
    physics.matters.*rules[at]->member = answer.matters[at];
  }
}

Physics fit_physics(const plan::Cluster& cluster, const Runs& runs) {
  const plan::Machine machine = models::machine_of(cluster);
  const auto rules = rules_for(ConstantRule::Use::Physics);
  RunSimulator simulator(cluster);
  FitProblem problem{.shared = parameters_of(rules, machine.constants, machine.spread),
                     .effects = {},
                     .groups = 0,
                     .group_of_row = {},
                     .residuals = {}};
  problem.residuals = [&](const std::vector<double>& values) {
    const MachineConstants constants = with_values(machine.constants, rules, values);
    std::vector<double> residuals(runs.size());
    for (std::size_t row = 0; row < runs.size(); ++row)
      residuals[row] = runs.residual(simulator, row, constants);
    return residuals;
  };
  const FitAnswer answer =
      robust_fit(problem, means_of(problem.shared), physics_scale, Classes(runs).of_row);
  Physics physics{.constants = with_values(machine.constants, rules, answer.values),
                  .spread = machine.spread,
                  .matters = {},
                  .cost = answer.cost};
  for (const ConstantRule& rule : plan::constant_rules())
    physics.matters.*rule.member = 0;
  note_fit(physics, rules, answer);
  for (const double residual : answer.residuals)
    physics.mean_error += std::abs(std::expm1(residual)) / static_cast<double>(runs.size());
  return physics;
}

void fit_memory(const plan::Cluster& cluster, const std::vector<MeasuredRun>& runs,
                const Assumption& assumed, Physics& physics) {
  const plan::Machine machine = models::machine_of(cluster);
  std::vector<std::vector<models::RankMemory>> ranks;
  std::vector<double> peaks;
  std::vector<int> classes;
  for (std::size_t row = 0; row < runs.size(); ++row)
    if (runs[row].peak_memory) {
      ranks.push_back(
          models::transformer_memory(runs[row].training, assumed_cut(cluster, runs[row], assumed)));
      peaks.push_back(static_cast<double>(runs[row].peak_memory->value));
      classes.push_back(static_cast<int>(classes.size()));
    }
  if (peaks.empty())
    return;
  const auto rules = rules_for(ConstantRule::Use::Memory);
  FitProblem problem{.shared = parameters_of(rules, machine.constants, machine.spread),
                     .effects = {},
                     .groups = 0,
                     .group_of_row = {},
                     .residuals = {}};
  problem.residuals = [&](const std::vector<double>& values) {
    const MachineConstants constants = with_values(machine.constants, rules, values);
    std::vector<double> residuals;
    for (std::size_t row = 0; row < peaks.size(); ++row)
      residuals.push_back(std::log(models::peak_of(ranks[row], constants) / peaks[row]));
    return residuals;
  };
  const FitAnswer answer = robust_fit(problem, means_of(problem.shared), memory_scale, classes);
  physics.constants = with_values(physics.constants, rules, answer.values);
  note_fit(physics, rules, answer);
}

}  // namespace pipewright::search
