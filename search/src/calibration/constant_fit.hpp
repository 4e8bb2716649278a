#pragma once

// Fits a machine's constants to runs: the physics to their times, the rest of the memory to their
// peaks.

#include "calibration_runs.hpp"
#include "robust_fit.hpp"

namespace pipewright::search {

/// Returns the rules of the constants that are fitted for a use; the functions below convert them
/// to parameters of a fit and back.
std::vector<const plan::ConstantRule*> rules_for(plan::ConstantRule::Use use);
std::vector<FitParameter> parameters_of(const std::vector<const plan::ConstantRule*>& rules,
                                        const plan::MachineConstants& means,
                                        const plan::MachineSpread& spread);
std::vector<double> means_of(const std::vector<FitParameter>& parameters);
plan::MachineConstants with_values(plan::MachineConstants constants,
                                   const std::vector<const plan::ConstantRule*>& rules,
                                   const std::vector<double>& logarithms);

struct Physics {
  plan::MachineConstants constants;
  plan::MachineSpread spread;
  plan::MachineConstants matters;  // more than 0: some run depends on it
  double cost = 0;
  double mean_error = 0;
};
/// Records the uncertainty of the constants of these rules after a fit.
void note_fit(Physics& physics, const std::vector<const plan::ConstantRule*>& rules,
              const FitAnswer& answer);

Physics fit_physics(const plan::Cluster& cluster, const Runs& runs);
/// Fits the memory constants to the runs' peaks and stores them in the physics.
void fit_memory(const plan::Cluster& cluster, const std::vector<models::MeasuredRun>& runs,
                const Assumption& assumed, Physics& physics);

}  // namespace pipewright::search
