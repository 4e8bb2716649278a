#pragma once

// A cluster's constants, fitted to measured runs. First the physics, from all runs: few constants
// with priors and bounds. Then, where runs of one class of layers agree among each other better
// than with the physics, factors of each class, drawn towards it. How far they may leave it is
// what predicts one half of the runs from the other best.

#include <string>
#include <vector>

#include "pipewright/models/measured/measured_run.hpp"
#include "pipewright/models/transformer/transformer_times.hpp"

namespace pipewright::search {

struct FittedConstant {
  std::string key;
  double prior = 0;
  double value = 0;
  double deviation = 0;  // of its logarithm
  bool at_bound = false;
  bool matters = false;  // to any run; otherwise it is as it was
};

struct Calibration {
  plan::Cluster cluster;           // with the fitted machine
  plan::MachineConstants physics;  // the constants where no class was measured
  std::vector<FittedConstant> constants;
  /// What runs that do not say so did, as their times tell: within a node, and on several.
  plan::RecomputeMode within_node = plan::RecomputeMode::None;
  plan::RecomputeMode between_nodes = plan::RecomputeMode::None;
  double class_spread = 0;   // of the classes' factors; 0: none is used
  double physics_error = 0;  // mean of |error| of the physics on its own runs
};

/// A cluster as its file has it: with no runs to learn from. Runs that do not say so did not
/// recompute.
Calibration as_it_is(const plan::Cluster& cluster);

/// Throws plan::InputError when the cluster lacks what the runs need.
Calibration calibrate(const plan::Cluster& cluster, const std::vector<models::MeasuredRun>& runs);

struct PredictedRun {
  double iteration_s = 0;
  double physics_s = 0;  // with no class's factors
  bool class_known = false;
};
std::vector<PredictedRun> predict_runs(const Calibration& calibration,
                                       const std::vector<models::MeasuredRun>& runs);

}  // namespace pipewright::search
