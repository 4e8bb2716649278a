#pragma once

// Fits a cluster's constants to measured runs. First it fits the physics to all runs: few constants
// with priors and bounds. Then, if runs of one class of layers agree with each other better than
// with the physics, it fits factors for each class, shrunk towards the physics. The allowed
// deviation is the one that predicts one half of the runs from the other best.

#include <string>
#include <vector>

#include "pipewright/models/measured/measured_run.hpp"
#include "pipewright/models/transformer/transformer_times.hpp"

namespace pipewright::search {

struct FittedConstant {
  std::string key;
  double prior = 0;
  double value = 0;
  double deviation = 0;  // standard deviation of its logarithm
  bool at_bound = false;
  bool matters = false;  // to any run; otherwise it has its prior value
};

struct Calibration {
  plan::Cluster cluster;           // with the fitted machine
  plan::MachineConstants physics;  // the constants for classes of layers that were not measured
  std::vector<FittedConstant> constants;
  /// The assumed recomputation of runs that do not say it, inferred from their times: of runs
  /// within a node, and of runs on several nodes.
  plan::RecomputeMode within_node = plan::RecomputeMode::None;
  plan::RecomputeMode between_nodes = plan::RecomputeMode::None;
  double class_spread = 0;   // of the classes' factors; 0: no factors are used
  double physics_error = 0;  // mean of |error| of the physics on its own runs
};

/// Returns the calibration of a cluster file without runs to learn from. Runs that do not say
/// whether they recompute are assumed not to.
Calibration as_it_is(const plan::Cluster& cluster);

/// Fits the constants. Throws plan::InputError if the cluster lacks figures that the runs need.
Calibration calibrate(const plan::Cluster& cluster, const std::vector<models::MeasuredRun>& runs);

struct PredictedRun {
  double iteration_s = 0;
  double physics_s = 0;  // without a class's factors
  bool class_known = false;
};
std::vector<PredictedRun> predict_runs(const Calibration& calibration,
                                       const std::vector<models::MeasuredRun>& runs);

}  // namespace pipewright::search
